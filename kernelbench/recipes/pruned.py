# SPDX-License-Identifier: Apache-2.0
"""Recipes for products with weights that were pruned, and with blocks.

It knows templates and knobs only.
"""

from __future__ import annotations

from ..recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
