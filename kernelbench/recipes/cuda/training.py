# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for what training needs beside forward passes."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Constraint, Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import ROWS, THREADS, UNROLL, VECTOR
from ._recipe import by_width, cuda_recipe, launch, times
from .rows import COMMON, EXPONENTIAL, TEAM

DOWN = make_knob("down", 4, 8, 16, meaning="threads of a block that share a column's sum")
SLAB = make_knob("slab", 64, 256, 1024, meaning="rows whose columns one block sums up")
SLABS = "cdiv(M, SLAB)"
DEFAULT: Knobs = {
    "team": 128,
    "rows": 1,
    "vector": 4,
    "unroll": 2,
    "down": 8,
    "slab": 256,
    "exponential": "exp2",
}


def _launch_rows(problem: str, args: Sequence[str], knobs: Knobs) -> list[Table]:
    """A team of threads for each row."""

    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"{problem}<{width}, {integer(knobs, 'team')}, {integer(knobs, 'rows')}>",
            when=conditions,
            grid=["cdiv(M, ROWS)"],
            block=["TEAM", "ROWS"],
            args=["M", "N", *args],
        )

    return by_width(integer(knobs, "vector"), "N", make)


def _launch_slabs(kernel: str, args: Sequence[str], sums: Sequence[str]) -> list[Table]:
    """Sums over rows in two steps: of slabs, one kind behind the other, and then of these."""
    columns = launch(
        kernel,
        grid=[f"cdiv(N, 32) * {SLABS}"],
        block=[32, "DOWN"],
        args=["M", "N", *args, "partial"],
    )
    joins = [
        launch(
            "join_slabs",
            grid=["cdiv(N, 256)"],
            block=[256],
            args=[SLABS, "N", {"buffer": "partial", "offset": f"{kind} * {SLABS} * N"}, name],
        )
        for kind, name in enumerate(sums)
    ]
    return [columns, *joins]


def _make_backward(
    problem: str, row_args: Sequence[str], column_args: Sequence[str], sums: Sequence[str]
) -> Recipe:
    """Of a normalisation: gradients along rows, and others that are summed over rows.

    Args:
        sums: the outputs that are summed over rows.
    """

    def plan(knobs: Knobs) -> LaunchPlan:
        return LaunchPlan(
            [
                *_launch_rows(problem, row_args, knobs),
                *_launch_slabs("gain_gradients", column_args, sums),
            ],
            {"partial": {"shape": [len(sums), SLABS, "N"], "dtype": "float32"}},
        )

    return cuda_recipe(
        problem,
        "slabs",
        "Rows by teams of threads; sums over rows by slabs of rows, which are then joined.",
        template=problem,
        knobs=(TEAM, ROWS, VECTOR, UNROLL, DOWN, SLAB),
        constraints=(*COMMON, WHOLE_SLABS),
        default=DEFAULT,
        plan=plan,
    )


WHOLE_SLABS = Constraint(
    "a slab has rows for all threads of its block",
    lambda knobs, _: integer(knobs, "slab") >= 4 * integer(knobs, "down"),
)

RMSNORM_BACKWARD = _make_backward(
    "rmsnorm_backward",
    ("x", "gamma", "rstd", "dy", "dx"),
    ("x", "rstd", "dy"),
    ("dgamma",),
)
LAYERNORM_BACKWARD = _make_backward(
    "layernorm_backward",
    ("x", "gamma", "mean", "rstd", "dy", "dx"),
    ("x", "mean", "rstd", "dy"),
    ("dgamma", "dbeta"),
)
CROSS_ENTROPY = cuda_recipe(
    "cross_entropy_ls",
    "online",
    "Maximum and sums in one pass (Milakov and Gimelshein, arXiv 1805.02867); a second writes.",
    template="cross_entropy_ls",
    knobs=(TEAM, ROWS, VECTOR, UNROLL, EXPONENTIAL),
    constraints=COMMON,
    default=DEFAULT,
    plan=lambda knobs: LaunchPlan(
        _launch_rows("cross_entropy_ls", ("x", "label", "loss", "dx"), knobs)
    ),
)
ADAM_ARGS = ("M", "p", "g", "m", "v", "step", "p1", "m1", "v1")


def _plan_adam(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"fused_adam<{width}>",
            when=conditions,
            grid=[f"cdiv(M, {times('THREADS * UNROLL', width)})"],
            block=["THREADS"],
            args=ADAM_ARGS,
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "M", make))


FUSED_ADAM = cuda_recipe(
    "fused_adam",
    "flat",
    "All tensors as runs of vectors, a few to a thread.",
    template="fused_adam",
    knobs=(THREADS, VECTOR, UNROLL),
    constraints=(),
    default={**DEFAULT, "threads": 256},
    plan=_plan_adam,
)


def _plan_chain(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        pieces = f"M // {width}" if width > 1 else "M"
        return launch(
            f"run_chain<{width}>",
            when=conditions,
            grid=[f"cdiv({pieces}, THREADS * EACH)"],
            block=["THREADS"],
            args=[pieces, "K", "x", "code", "c", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "M", make))


CHAIN = cuda_recipe(
    "elementwise_chain",
    "registers",
    "A thread keeps its numbers in registers and goes over the table once.",
    template="elementwise_chain",
    knobs=(
        THREADS,
        make_knob("each", 1, 2, 4, meaning="pieces that a thread has"),
        VECTOR,
        UNROLL,
    ),
    constraints=(),
    default={"threads": 256, "each": 2, "vector": 4, "unroll": 2},
    plan=_plan_chain,
)


def _plan_galore(_: Knobs) -> LaunchPlan:
    def tiles(rows: str) -> list[str]:
        return [f"cdiv({rows}, TILE * ITEMS) * cdiv(N, TILE)"]

    moments = ["m", "v", "step", "m1", "v1", "way"]
    block, sizes = ["TILE", "TILE"], ["M", "N", "R"]
    update = [*sizes, "W", "P", "way", "step", "W1"]
    return LaunchPlan(
        [
            launch("project", grid=tiles("R"), block=block, args=[*sizes, "G", "P", *moments]),
            launch("move", grid=tiles("M"), block=block, args=update),
        ],
        {"way": {"shape": ["R", "N"], "dtype": "float32"}},
    )


def _plan_gradnorm(_: Knobs) -> LaunchPlan:
    def tiles(rows: str, columns: str) -> list[str]:
        return [f"cdiv({rows}, TILE * ITEMS) * cdiv({columns}, TILE)"]

    block = ["TILE", "TILE"]
    moments = ["m", "v", "step", "m1", "v1", "way"]
    columns = ["V", "G", "P", "off", "gain", "turned"]
    update = ["M", "N", "R", "V", "P", "turned", "step", "V1"]
    return LaunchPlan(
        [
            launch(
                "measure",
                grid=["cdiv(N, TILE * TILE)"],
                block=["TILE * TILE"],
                args=["M", "N", "V", "G", "g", "off", "gain"],
            ),
            launch("turn", grid=tiles("R", "N"), block=block, args=["M", "N", "R", *columns]),
            launch(
                "project",
                grid=tiles("R", "R"),
                block=block,
                args=["N", "R", "turned", "Q", *moments],
            ),
            launch(
                "widen", grid=tiles("R", "N"), block=block, args=["N", "R", "way", "Q", "turned"]
            ),
            launch("move", grid=tiles("M", "N"), block=block, args=update),
        ],
        {
            "off": {"shape": ["N"], "dtype": "float32"},
            "gain": {"shape": ["N"], "dtype": "float32"},
            "turned": {"shape": ["R", "N"], "dtype": "float32"},
            "way": {"shape": ["R", "R"], "dtype": "float32"},
        },
    )


GRADNORM_LORP = cuda_recipe(
    "gradnorm_lorp_step",
    "four-products",
    "Columns are measured; two products project, Adam at their end, and two update the weight.",
    template="gradnorm_lorp_step",
    knobs=(
        make_knob("tile", 8, 16, 32, meaning="columns of a tile, and steps that are staged"),
        make_knob("items", 1, 2, 4, 8, meaning="rows of a thread, a tile's width apart"),
    ),
    constraints=(),
    default={"tile": 16, "items": 4},
    plan=_plan_gradnorm,
)

GALORE_ADAM = cuda_recipe(
    "galore_adam_step",
    "two-products",
    "The projection, with Adam at its end, and the product that updates the weight, by tiles.",
    template="galore_adam_step",
    knobs=(
        make_knob("tile", 8, 16, 32, meaning="columns of a tile, and steps that are staged"),
        make_knob("items", 1, 2, 4, 8, meaning="rows of a thread, a tile's width apart"),
    ),
    constraints=(),
    default={"tile": 16, "items": 4},
    plan=_plan_galore,
)


def _plan_tiled(_: Knobs) -> LaunchPlan:
    args = ["M", "D", "F", "x", "gate", "up", "down", "y"]
    return LaunchPlan([launch("tiled_mlp", grid=["cdiv(M, TOKENS)"], block=["THREADS"], args=args)])


TILED_MLP = cuda_recipe(
    "tiled_mlp",
    "chunks",
    "A block takes a few tokens over chunks of columns, which shared memory alone holds.",
    template="tiled_mlp",
    knobs=(
        make_knob("threads", 64, 128, 256, 512, meaning="threads per block, columns of a chunk"),
        make_knob("tokens", 2, 4, 8, 16, meaning="tokens per block, which share loads of weights"),
        make_knob("depth", 16, 32, 64, meaning="elements of tokens that are staged at once"),
        *(UNROLL, EXPONENTIAL),
    ),
    constraints=(),
    default={"threads": 256, "tokens": 8, "depth": 32, "unroll": 4, "exponential": "exp2"},
    plan=_plan_tiled,
)

RECIPES = (
    RMSNORM_BACKWARD,
    LAYERNORM_BACKWARD,
    CROSS_ENTROPY,
    FUSED_ADAM,
    CHAIN,
    GALORE_ADAM,
    TILED_MLP,
    GRADNORM_LORP,
)
