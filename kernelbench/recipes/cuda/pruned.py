# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for products with weights that were pruned, and with blocks."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
