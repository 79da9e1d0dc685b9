# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for layers as servers and mixtures of experts call them."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
