# SPDX-License-Identifier: Apache-2.0
"""Holds workflows against each other at equal spend: what is run, how it went, what it shows."""
