# SPDX-License-Identifier: Apache-2.0
"""Which recipes there are. It only collects; how one is written stands in the modules beside it."""

from __future__ import annotations

from ...errors import UnknownNameError
from ..languages import CPP
from ..recipe import Recipe
from . import (
    attention,
    convolution,
    gemm,
    graph,
    integer,
    pruned,
    quantised,
    rows,
    serving,
    sparse,
    training,
    vision,
    w8a8,
)
from .cuda import attention as cuda_attention
from .cuda import convolution as cuda_convolution
from .cuda import gemm as cuda_gemm
from .cuda import gemm_halves as cuda_gemm_halves
from .cuda import graph as cuda_graph
from .cuda import hadamard as cuda_hadamard
from .cuda import integer as cuda_integer
from .cuda import pruned as cuda_pruned
from .cuda import quantised as cuda_quantised
from .cuda import rows as cuda_rows
from .cuda import serving as cuda_serving
from .cuda import sparse as cuda_sparse
from .cuda import spmm as cuda_spmm
from .cuda import training as cuda_training
from .cuda import vision as cuda_vision
from .cuda import w8a8 as cuda_w8a8
from .triton import gemm as triton_gemm
from .triton import rows as triton_rows
from .triton import sparse as triton_sparse

CUDA = (
    *cuda_spmm.RECIPES,
    *cuda_sparse.RECIPES,
    *cuda_rows.RECIPES,
    *cuda_gemm.RECIPES,
    *cuda_gemm_halves.RECIPES,
    *cuda_hadamard.RECIPES,
    *cuda_w8a8.RECIPES,
    *cuda_quantised.RECIPES,
    *cuda_pruned.RECIPES,
    *cuda_graph.RECIPES,
    *cuda_attention.RECIPES,
    *cuda_serving.RECIPES,
    *cuda_integer.RECIPES,
    *cuda_training.RECIPES,
    *cuda_convolution.RECIPES,
    *cuda_vision.RECIPES,
)
TRITON = (*triton_sparse.RECIPES, *triton_rows.RECIPES, *triton_gemm.RECIPES)
RECIPES: tuple[Recipe, ...] = (
    *sparse.RECIPES,
    *rows.RECIPES,
    *gemm.RECIPES,
    *w8a8.RECIPES,
    *quantised.RECIPES,
    *pruned.RECIPES,
    *graph.RECIPES,
    *attention.RECIPES,
    *serving.RECIPES,
    *integer.RECIPES,
    *training.RECIPES,
    *convolution.RECIPES,
    *vision.RECIPES,
    *CUDA,
    *TRITON,
)


def recipes_for(problem: str, language: str = CPP.name) -> tuple[Recipe, ...]:
    """The recipes for a problem in a language; empty when there are none."""
    return tuple(r for r in RECIPES if r.problem == problem and r.language == language)


def get(problem: str, family: str, language: str = CPP.name) -> Recipe:
    """One recipe; UnknownNameError with the nearest families when there is no such recipe."""
    found = recipes_for(problem, language)
    for recipe in found:
        if recipe.family == family:
            return recipe
    raise UnknownNameError.for_name(
        f"{language} recipe of {problem}", family, [recipe.family for recipe in found]
    )
