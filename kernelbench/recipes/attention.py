# SPDX-License-Identifier: Apache-2.0
"""Recipes for attention, and what goes with its caches. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
