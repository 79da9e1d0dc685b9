# SPDX-License-Identifier: Apache-2.0
"""The command line. It parses, calls and prints; it decides nothing."""

from .app import main

__all__ = ["main"]
