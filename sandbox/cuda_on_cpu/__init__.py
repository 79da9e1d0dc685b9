# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ compiled by an ordinary C++ compiler and run on the CPU: header, runtime, build."""
