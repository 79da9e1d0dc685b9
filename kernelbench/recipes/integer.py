# SPDX-License-Identifier: Apache-2.0
"""Recipes for arithmetic on integers and narrow codes. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
