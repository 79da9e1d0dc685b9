# SPDX-License-Identifier: Apache-2.0
"""The referee as a process of its own, and who speaks with it."""
