"""Recipes for products with a sparse matrix in CSR form. It knows templates and knobs only."""

from __future__ import annotations

from ..recipe import Constraint, Facts, Knobs, Recipe
from ._knobs import (
    CHUNK,
    SCHEDULE,
    STREAM,
    THREADS,
    USEFUL_CHUNK,
    USEFUL_THREADS,
    USEFUL_VECTOR,
    VECTOR,
    chosen,
    number,
    register_budget,
)
from ._render import renderer

PREFETCH = chosen(
    "prefetch", 0, 4, 8, 16, meaning="non-zeros ahead that a row of the dense operand is fetched"
)
VECTORS = chosen("vectors", 1, 2, 4, 8, 16, meaning="vectors of an output row held in registers")
PIECES = chosen("pieces", 1, 2, 4, 16, meaning="equal pieces of rows and non-zeros per thread")
PIECE_SCHEDULE = chosen("schedule", "static", "dynamic", meaning="how pieces are dealt to threads")


def _accumulators_fit(knobs: Knobs, facts: Facts) -> bool:
    return number(knobs, "vectors") * number(knobs, "unroll") <= register_budget(facts)


FITS_REGISTERS = Constraint("the accumulators fit in the vector registers", _accumulators_fit)


def _spmm() -> tuple[Recipe, ...]:
    unroll = chosen("unroll", 1, 2, meaning="non-zeros accumulated in parallel")
    row = (VECTOR, VECTORS, unroll, PREFETCH, SCHEDULE, CHUNK, STREAM, THREADS)
    nnz = (VECTOR, VECTORS, unroll, PREFETCH, PIECE_SCHEDULE, PIECES, STREAM, THREADS)
    common = {"vector": "native", "vectors": 8, "unroll": 1, "prefetch": 8, "stream": 0}
    return (
        Recipe(
            problem="spmm_csr",
            family="row-balanced",
            language="cpp",
            summary="A thread owns rows; a tile of an output row stays in registers.",
            knobs=row,
            render=renderer("spmm_csr_row.cpp.j2", "row-balanced", row),
            constraints=(FITS_REGISTERS, USEFUL_CHUNK, USEFUL_THREADS, USEFUL_VECTOR),
            default={**common, "schedule": "dynamic", "chunk": 256, "threads": 0},
        ),
        Recipe(
            problem="spmm_csr",
            family="nnz-balanced",
            language="cpp",
            summary="Pieces hold equal numbers of rows plus non-zeros; cut rows are added after.",
            knobs=nnz,
            render=renderer("spmm_csr_nnz.cpp.j2", "nnz-balanced", nnz),
            constraints=(FITS_REGISTERS, USEFUL_THREADS, USEFUL_VECTOR),
            default={**common, "schedule": "dynamic", "pieces": 4, "threads": 0},
        ),
    )


RECIPES = _spmm()
