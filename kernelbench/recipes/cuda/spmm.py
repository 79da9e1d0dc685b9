# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for a sparse matrix times a dense one, and for its relatives that reduce otherwise.

For `spmm_csr` these are the ladder of GE-SpMM (Huang et al., SC'20): `naive`, `crc`, `crc-cwm`; and
the families of adaptive workload balancing (Dai et al., arXiv 2106.16064, and DA-SpMM, DAC'22):
rows or non-zeros shared equally, each reduced in sequence or in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ...policies import name_in
from ...recipe import Constraint, Knob, Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import LANES, ROWS, UNROLL, VECTOR, fits_block, fits_shared, product
from ._recipe import Planner, by_width, cuda_recipe, launch, times

GE_SPMM = "(GE-SpMM, Huang et al., SC'20)"
DA_SPMM = "(DA-SpMM, Dai et al., DAC'22)"
SUMS, REDUCTIONS = {"instance": "int V"}, {"instance": "typename Reduction, int V"}
TENSORS = ("indptr", "indices", "values", "B", "C")

SIDE = make_knob(
    "lanes", 32, 64, 128, 256, meaning="columns, one to a thread, of a row of the block"
)
COLUMNS = make_knob("lanes", 1, 2, 4, 8, 16, 32, meaning="threads side by side in a row of C")
TILE = make_knob("tile", 32, 64, 128, meaning="entries of a row staged in shared memory at a time")
COARSEN = make_knob("coarsen", 2, 3, 4, meaning="tiles of columns that a warp has")
PIECES = make_knob("pieces", 1, 2, 4, 8, 16, meaning="pieces of the entries per block")
SIZE = make_knob("least", 32, 64, 128, 256, 512, meaning="entries in a piece, at least")

DEFAULT: Knobs = {
    "lanes": 32,
    "rows": 8,
    "vector": 1,
    "unroll": 4,
    "tile": 32,
    "coarsen": 2,
    "pieces": 8,
    "least": 128,
}

IN_TF32 = name_in("spmm_csr", "tf32")
ROWS_OF_TILE = 16
"""Of a window whose columns are condensed: as many as a tile of tensor cores has."""
MOST_PIECES = 1 << 16
"""More than any device runs at once; with it the carries stay small, however many entries."""
PIECE = f"max(LEAST, 32 * cdiv(nnz, {32 * MOST_PIECES}))"
COUNT = f"cdiv(nnz, {PIECE})"

in_block = fits_block(lambda knobs: product(knobs, "lanes", "rows"))
warps_in_block = fits_block(lambda knobs: 32 * integer(knobs, "rows"))


def _tile_fits(knobs: Knobs) -> int:
    return 8 * product(knobs, "rows", "tile")


def rows_plan(kernel: str, columns: str, block: Sequence[str | int], problem: str) -> Planner:
    """A kernel whose blocks have ROWS rows.

    Args:
        kernel: Its name.
        columns: Of a block, in vectors.
        block: Threads.
        problem: With reductions of its own, or plain sums.
    """

    def plan(knobs: Knobs) -> LaunchPlan:
        def make(reduction: str, width: int, conditions: Sequence[str]) -> Table:
            return launch(
                f"{kernel}<{reduction}{width}>",
                when=conditions,
                grid=["cdiv(M, ROWS)", f"cdiv(N, {times(columns, width)})"],
                block=block,
                args=["M", "N", *TENSORS],
            )

        vector = integer(knobs, "vector") if "vector" in knobs else 1
        launches: list[Table] = []
        for reduction, when in _reductions(problem):
            named = _with_reduction(make, reduction)
            launches += by_width(vector, "N", named, when)
        return LaunchPlan(launches)

    return plan


def _reductions(problem: str) -> list[tuple[str, list[str]]]:
    if problem == "spmm_csr":
        return [("", [])]
    return [("Maximum, ", ["reduce == 0"]), ("Mean, ", ["reduce != 0"])]


def _with_reduction(
    make: Callable[[str, int, Sequence[str]], Table], reduction: str
) -> Callable[[int, Sequence[str]], Table]:
    return lambda width, conditions: make(reduction, width, conditions)


def _recipe(
    problem: str,
    family: str,
    summary: str,
    template: str,
    *knobs: Knob,
    plan: Planner,
    constraints: tuple[Constraint, ...],
    default: Knobs,
) -> Recipe:
    return cuda_recipe(
        problem,
        family,
        summary,
        template=template,
        knobs=knobs,
        constraints=constraints,
        default={**DEFAULT, **default},
        plan=plan,
        **(SUMS if problem == "spmm_csr" else REDUCTIONS),
    )


def _of_ge_spmm(problem: str) -> tuple[Recipe, ...]:
    recipe = partial(_recipe, problem)
    staged = (warps_in_block, fits_shared(_tile_fits))
    return (
        recipe(
            "naive",
            f"A thread per element of C, along the row's entries {GE_SPMM}.",
            "spmm_seq",
            SIDE,
            ROWS,
            UNROLL,
            plan=rows_plan("spmm_seq", "LANES", ["LANES", "ROWS"], problem),
            constraints=(in_block,),
            default={"unroll": 1},
        ),
        recipe(
            "crc",
            f"Coalesced row caching: a warp stages entries in shared memory {GE_SPMM}.",
            "spmm_crc",
            ROWS,
            TILE,
            UNROLL,
            plan=rows_plan("spmm_crc", "32", [32, "ROWS"], problem),
            constraints=staged,
            default={},
        ),
        recipe(
            "crc-cwm",
            f"Coarse-grained warp merging: row caching for 2 to 4 column tiles at once {GE_SPMM}.",
            "spmm_crc",
            ROWS,
            TILE,
            COARSEN,
            VECTOR,
            UNROLL,
            plan=rows_plan("spmm_crc", "32 * COARSEN", [32, "ROWS"], problem),
            constraints=staged,
            default={"unroll": 2},
        ),
    )


def _of_da_spmm(problem: str) -> tuple[Recipe, ...]:
    recipe = partial(_recipe, problem)
    return (
        recipe(
            "row-seq",
            f"Rows shared equally, each reduced in sequence {DA_SPMM}.",
            "spmm_seq",
            COLUMNS,
            ROWS,
            VECTOR,
            UNROLL,
            plan=rows_plan("spmm_seq", "LANES", ["LANES", "ROWS"], problem),
            constraints=(in_block,),
            default={"lanes": 8, "vector": 4, "rows": 16},
        ),
        recipe(
            "row-par",
            f"Rows shared equally, each reduced in parallel by lanes {DA_SPMM}.",
            "spmm_par",
            LANES,
            ROWS,
            VECTOR,
            UNROLL,
            plan=rows_plan("spmm_par", "1", ["LANES", "ROWS"], problem),
            constraints=(in_block,),
            default={"lanes": 8, "vector": 4, "rows": 16, "unroll": 1},
        ),
    )


def pieces_plan(
    kernel: str,
    columns: str,
    block: Sequence[str | int],
    *,
    n: str | int = "N",
    names: tuple[str, str] = ("B", "C"),
) -> Planner:
    """A kernel whose blocks have PIECES pieces of the entries, and what joins cut rows.

    Args:
        kernel: Its name.
        columns: Of a block, in vectors.
        block: Threads.
        n: Columns of the dense factor: an axis, or 1 for a vector.
        names: Of the dense factor and the answer.
    """
    dense, answer = names

    def plan(knobs: Knobs) -> LaunchPlan:
        def make(width: int, conditions: Sequence[str]) -> Table:
            return launch(
                f"{kernel}<{width}>",
                when=conditions,
                grid=[f"cdiv({COUNT}, PIECES)", f"cdiv({n}, {times(columns, width)})"],
                block=block,
                args=["M", n, "nnz", PIECE, "indptr", "indices", "values", dense, answer, "carry"],
            )

        has_entries = ["nnz > 0"]
        vector = integer(knobs, "vector") if "vector" in knobs else 1
        return LaunchPlan(
            [
                {"zero": answer},
                *by_width(vector, str(n), make, has_entries),
                launch_joining(COUNT, PIECE, n, answer),
            ],
            {"carry": {"shape": [COUNT, n], "dtype": "float32"}},
        )

    return plan


def launch_joining(count: str, size: str, n: str | int, answer: str) -> Table:
    """The launch that adds up the shares of rows that were cut into pieces."""
    block = [1, 256] if n == 1 else [32, 8]
    return launch(
        "add_carries",
        when=["nnz > 0"],
        grid=[f"cdiv({count}, {block[1]})", f"cdiv({n}, 32)"],
        block=block,
        args=["M", n, "nnz", size, "indptr", "carry", answer],
    )


BY_ENTRIES = (
    cuda_recipe(
        "spmm_csr",
        "nnz-seq",
        f"Non-zeros shared equally, in sequence; a second launch joins cut rows {DA_SPMM}.",
        template="spmm_pieces",
        knobs=(COLUMNS, PIECES, SIZE, VECTOR, UNROLL),
        constraints=(fits_block(lambda knobs: product(knobs, "lanes", "pieces")),),
        default={**DEFAULT, "lanes": 8, "vector": 4, "pieces": 16, "least": 64},
        plan=pieces_plan("spmm_pieces", "LANES", ["LANES", "PIECES"]),
    ),
    cuda_recipe(
        "spmm_csr",
        "nnz-par",
        f"Non-zeros shared equally, by a segmented scan; a second launch joins cut rows {DA_SPMM}.",
        template="spmm_scan",
        knobs=(PIECES, SIZE, VECTOR),
        constraints=(),
        default={**DEFAULT, "vector": 4},
        plan=pieces_plan("spmm_scan", "1", [32, "PIECES"]),
    ),
)


def _count_translated_bytes(knobs: Knobs) -> int:
    taken = 32 * product(knobs, "warps", "slots")
    return 4 * (ROWS_OF_TILE * (taken + 4) + 4 * taken + taken // 32 + 4 * ROWS_OF_TILE + 1)


TRANSLATED = cuda_recipe(
    IN_TF32,
    "translated",
    "Tensor cores: columns of 16 rows are condensed in shared memory into dense tiles (TC-GNN, "
    "Wang et al., ATC'23).",
    template="spmm_translated",
    knobs=(
        make_knob("warps", 1, 2, 4, 8, meaning="warps that share a window of 16 rows"),
        make_knob("slots", 1, 2, 4, 8, meaning="entries that a thread takes at a time"),
        make_knob("across", 1, 2, 4, 8, meaning="tiles of 8 columns of C that a warp has"),
    ),
    constraints=(fits_shared(_count_translated_bytes),),
    default={"warps": 4, "slots": 1, "across": 4},
    plan=lambda _: LaunchPlan(
        [
            launch(
                "spmm_translated",
                grid=["cdiv(M, 16)", "cdiv(N, 8 * ACROSS * WARPS)"],
                block=["32 * WARPS"],
                args=["M", "N", *TENSORS],
            )
        ]
    ),
)

OF_SPMM = (*_of_ge_spmm("spmm_csr"), *_of_da_spmm("spmm_csr"), *BY_ENTRIES)
RECIPES = (
    *OF_SPMM,
    TRANSLATED,
    # float32 keeps a policy that allows TF32; these kernels are not called as their problem is.
    *(replace(each, problem=IN_TF32) for each in OF_SPMM),
    *_of_ge_spmm("gspmm_reduce"),
    *_of_da_spmm("gspmm_reduce"),
)
