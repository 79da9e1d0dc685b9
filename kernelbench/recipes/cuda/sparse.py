# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for operators on the entries of a CSR pattern, but for those of `spmm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...recipe import Knobs
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import LANES, THREADS, UNROLL, VECTOR, fits_shared, product
from ._recipe import by_width, cuda_recipe, launch
from .rows import EXPONENTIAL
from .spmm import PIECES, SIZE, launch_joining, pieces_plan

GROUP = make_knob("group", 1, 2, 4, 8, meaning="entries at a time")
HELD = make_knob("held", 1, 2, 4, meaning="vectors of a row of U that a thread holds in registers")
ENTRY_LANES = make_knob("lanes", 1, 2, 4, 8, 16, 32, meaning="threads that share an entry")
ITEMS = make_knob("items", 1, 2, 4, 8, meaning="entries per thread")
PASSES = make_knob("passes", "online", "three", meaning="over a row: two, online, or three")
LONG = make_knob("long", 64, 256, 1024, meaning="entries above which a row has a block of its own")
LONG_THREADS = make_knob("long_threads", 128, 512, meaning="threads of such a block")

FEW_LANES, IDLE = 4, 8
"""Lanes for rows of which more than IDLE would fit side by side into those of the knob."""

DEFAULT: Knobs = {
    "threads": 256,
    "lanes": 8,
    "unroll": 1,
    "items": 4,
    "pieces": 8,
    "least": 128,
    "group": 2,
    "vector": 4,
    "held": 2,
    "passes": "online",
    "exponential": "exp2",
    "long": 256,
    "long_threads": 128,
}

SPMV_TENSORS = ("indptr", "indices", "values", "x", "y")


def _spmv_rows(per_block: str) -> LaunchPlan:
    grid = [f"cdiv(M, {per_block})"]
    args = ["M", *SPMV_TENSORS]
    return LaunchPlan([launch("spmv_rows", grid=grid, block=["THREADS"], args=args)])


def _stream(_: Knobs) -> LaunchPlan:
    size = "THREADS * ITEMS"
    count = f"cdiv(nnz, {size})"
    main = launch(
        "spmv_stream",
        when=["nnz > 0"],
        grid=[count],
        block=["THREADS"],
        args=["M", "nnz", *SPMV_TENSORS, "carry"],
    )
    return LaunchPlan(
        [{"zero": "y"}, main, launch_joining(count, size, 1, "y")],
        {"carry": {"shape": [count], "dtype": "float32"}},
    )


SPMV = (
    cuda_recipe(
        "spmv_csr",
        "row-thread",
        "A thread per row: rows shared equally, reduced in sequence.",
        template="spmv_rows",
        knobs=(THREADS, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=lambda _: _spmv_rows("THREADS"),
    ),
    cuda_recipe(
        "spmv_csr",
        "row-lanes",
        "A few lanes per row: rows shared equally, reduced in parallel.",
        template="spmv_rows",
        knobs=(THREADS, LANES, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=lambda _: _spmv_rows("(THREADS // LANES)"),
    ),
    cuda_recipe(
        "spmv_csr",
        "nnz-par",
        "Non-zeros shared equally, reduced by a segmented scan; a second launch joins cut rows.",
        template="spmm_scan",
        knobs=(PIECES, SIZE),
        constraints=(),
        default=DEFAULT,
        plan=pieces_plan("spmm_scan", "1", [32, "PIECES"], n=1, names=("x", "y")),
    ),
    cuda_recipe(
        "spmv_csr",
        "nnz-stream",
        "Blocks stage equal numbers of products in shared memory and reduce rows from there.",
        template="spmv_stream",
        knobs=(
            THREADS,
            ITEMS,
            make_knob("lanes", 1, 2, 4, 8, 16, 32, meaning="threads that share a row"),
        ),
        constraints=(fits_shared(lambda knobs: 4 * product(knobs, "threads", "items")),),
        default=DEFAULT,
        plan=_stream,
    ),
)


def _entries(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"sddmm_entries<{width}>",
            when=conditions,
            grid=["cdiv(nnz, THREADS // LANES * GROUP)"],
            block=["THREADS"],
            args=["M", "D", "nnz", "indptr", "indices", "U", "V", "E"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "D", make, ["nnz > 0"]))


def _rows(kernel: str, knobs: Knobs, when: Sequence[str] = ()) -> list[Table]:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"{kernel}<{width}>",
            when=conditions,
            grid=["cdiv(M, THREADS // LANES)"],
            block=["THREADS"],
            args=["M", "D", "indptr", "indices", "U", "V", "E"],
        )

    return by_width(integer(knobs, "vector"), "D", make, when)


def _plan_held(knobs: Knobs) -> LaunchPlan:
    vector = integer(knobs, "vector")
    fits = (
        f"D <= LANES * HELD * ({vector} if D % {vector} == 0 else 1)"
        if vector > 1
        else ("D <= LANES * HELD")
    )
    return LaunchPlan(
        [*_rows("sddmm_held", knobs, [fits]), *_rows("sddmm_rows", knobs, [f"not {fits}"])]
    )


SDDMM = (
    cuda_recipe(
        "sddmm_csr",
        "row-balanced",
        "Lanes share a row and take its entries in groups.",
        template="sddmm",
        knobs=(THREADS, ENTRY_LANES, GROUP, VECTOR, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=lambda knobs: LaunchPlan(_rows("sddmm_rows", knobs)),
    ),
    cuda_recipe(
        "sddmm_csr",
        "row-held",
        "As row-balanced, with the row of U in registers where it fits.",
        template="sddmm",
        knobs=(THREADS, ENTRY_LANES, GROUP, VECTOR, HELD),
        constraints=(),
        default=DEFAULT,
        plan=_plan_held,
    ),
    cuda_recipe(
        "sddmm_csr",
        "nnz-balanced",
        "Lanes share groups of entries, wherever rows begin.",
        template="sddmm",
        knobs=(THREADS, ENTRY_LANES, GROUP, VECTOR, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=_entries,
    ),
)


def _by_length(knobs: Knobs, make: Callable[[int, list[str]], list[Table]]) -> list[Table]:
    """Launches with the lanes of the knob, and with few where most of them would be idle."""
    lanes = integer(knobs, "lanes")
    if lanes <= FEW_LANES:
        return make(lanes, [])
    idle = f"{IDLE} * avg_row < LANES"
    return [*make(lanes, [f"not {idle}"]), *make(FEW_LANES, [idle])]


def _edge_launch(kernel: str, lanes: int, teams: str, when: Sequence[str]) -> Table:
    return launch(
        f"{kernel}<{lanes}>",
        when=when,
        grid=[f"cdiv({teams}, THREADS // {lanes})"],
        block=["THREADS"],
        args=["M", "H", "indptr", "e", "alpha"],
    )


def _heads(lanes: int, when: list[str]) -> list[Table]:
    return [_edge_launch("row_heads", lanes, "M * H", when)]


def _launch_flat(lanes: int, when: list[str]) -> list[Table]:
    flat = _edge_launch("row_flat", lanes, "M", [*when, f"{lanes} % H == 0"])
    return [flat, *_heads(lanes, [*when, f"{lanes} % H != 0"])]


def _plan_binned(knobs: Knobs) -> LaunchPlan:
    long = launch(
        "long_rows",
        when=["max_row > LONG"],
        grid=["cdiv(M, LONG_THREADS)"],
        block=["LONG_THREADS"],
        args=["M", "H", "indptr", "e", "alpha"],
    )
    return LaunchPlan([*_by_length(knobs, _launch_flat), long])


EDGE_KNOBS = (THREADS, LANES, UNROLL, PASSES, EXPONENTIAL)
EDGE_SOFTMAX = (
    cuda_recipe(
        "edge_softmax",
        "row-heads",
        "Lanes share a row and head.",
        template="edge_softmax",
        knobs=EDGE_KNOBS,
        constraints=(),
        default=DEFAULT,
        plan=lambda knobs: LaunchPlan(_by_length(knobs, _heads)),
    ),
    cuda_recipe(
        "edge_softmax",
        "row-flat",
        "Lanes share a row and read its heads side by side, where their number allows it.",
        template="edge_softmax",
        knobs=EDGE_KNOBS,
        constraints=(),
        default=DEFAULT,
        plan=lambda knobs: LaunchPlan(_by_length(knobs, _launch_flat)),
    ),
    cuda_recipe(
        "edge_softmax",
        "binned",
        "As row-flat for short rows; a block for each long one.",
        template="edge_softmax",
        knobs=(*EDGE_KNOBS, LONG, LONG_THREADS),
        constraints=(),
        default=DEFAULT,
        plan=_plan_binned,
    ),
)

PRODUCT = ("indptr", "indices", "values", "b_indptr", "b_indices", "b_values")
SPGEMM = (
    cuda_recipe(
        "spgemm_csr",
        "windows",
        "A block has a row; its columns in windows, each a sum and a bit in shared memory.",
        template="spgemm_csr",
        knobs=(
            THREADS,
            ENTRY_LANES,
            make_knob("width", 256, 512, 1024, 2048, 4096, meaning="columns of a window"),
        ),
        constraints=(fits_shared(lambda knobs: 5 * integer(knobs, "width")),),
        default={**DEFAULT, "threads": 128, "width": 1024},
        plan=lambda _: LaunchPlan(
            [
                launch(
                    "spgemm_csr",
                    grid=["M"],
                    block=["THREADS"],
                    args=["K", *PRODUCT, "c_indptr", "c_indices", "c_values"],
                )
            ]
        ),
    ),
)

RECIPES = (*SPMV, *SDDMM, *EDGE_SOFTMAX, *SPGEMM)
