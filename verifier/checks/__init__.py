# SPDX-License-Identifier: Apache-2.0
"""Checks of an answer and of how it came about."""
