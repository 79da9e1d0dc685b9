# SPDX-License-Identifier: Apache-2.0
"""Inputs, right answers and what an answer is held against."""
