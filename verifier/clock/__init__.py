# SPDX-License-Identifier: Apache-2.0
"""Timing: sides, clocks, statistics and the roofline."""
