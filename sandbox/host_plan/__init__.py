# SPDX-License-Identifier: Apache-2.0
"""Launch plans written from the host code that people publish beside their kernels."""
