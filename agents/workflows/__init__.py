# SPDX-License-Identifier: Apache-2.0
"""The loops that campaigns run, one graph per file."""
