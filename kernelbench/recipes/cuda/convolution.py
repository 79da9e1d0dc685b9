# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for convolutions, state spaces and encodings."""

from __future__ import annotations

from ...recipe import Recipe

RECIPES: tuple[Recipe, ...] = ()
