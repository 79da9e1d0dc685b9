# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for what training needs beside forward passes."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
