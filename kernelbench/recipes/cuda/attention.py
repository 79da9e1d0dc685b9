# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for attention, and what goes with its caches."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
