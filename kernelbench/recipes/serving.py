# SPDX-License-Identifier: Apache-2.0
"""Recipes for layers as servers and mixtures of experts call them.

It knows templates and knobs only.
"""

from __future__ import annotations

from ..recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
