# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for neural networks on graphs."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
