# SPDX-License-Identifier: Apache-2.0
"""The brains that fill the roles of Coder and Judge, side by side."""
