# SPDX-License-Identifier: Apache-2.0
"""Recipes in CUDA C++."""
