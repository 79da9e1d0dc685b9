# SPDX-License-Identifier: Apache-2.0
"""Hand-written kernel families with knobs: what the offline Coder instantiates."""

from .catalogue import get, recipes_for

__all__ = ["get", "recipes_for"]
