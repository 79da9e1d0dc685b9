# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for arithmetic on integers and narrow codes."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
