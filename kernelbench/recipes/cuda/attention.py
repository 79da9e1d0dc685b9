# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for attention, and what goes with its caches."""

from __future__ import annotations

from ...recipe import Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import UNROLL, VECTOR, fits_block, fits_shared, product
from ._recipe import by_width, cuda_recipe, launch
from .rows import EXPONENTIAL

HEADS = (64, 128)
"""Elements of a head that there are."""
PREFILL_ARGS = ("R", "S", "cdiv(S, ROWS)", "q", "k", "v", "o")


def _plan_prefill(_: Knobs) -> LaunchPlan:
    def make(width: int) -> Table:
        return launch(
            f"attention_prefill<{width}>",
            when=[f"D == {width}"],
            grid=["cdiv(S, ROWS) * G * R"],
            block=["TEAM * ROWS"],
            args=PREFILL_ARGS,
        )

    return LaunchPlan([make(width) for width in HEADS])


ATTENTION_PREFILL = (
    cuda_recipe(
        "attention_prefill",
        "flash",
        "Blocks of keys in shared memory with running maxima; a few threads share a query.",
        template="attention_prefill",
        knobs=(
            make_knob("rows", 8, 16, 32, 64, meaning="queries per block"),
            make_knob("team", 4, 8, 16, meaning="threads that share a query"),
            make_knob("keys", 8, 16, 32, meaning="keys that are staged at once"),
            UNROLL,
            EXPONENTIAL,
        ),
        constraints=(
            fits_block(lambda knobs: product(knobs, "rows", "team"), fewest=64),
            fits_shared(lambda knobs: 2 * 4 * HEADS[-1] * product(knobs, "keys")),
        ),
        default={"rows": 16, "team": 4, "keys": 16, "unroll": 4, "exponential": "exp2"},
        plan=_plan_prefill,
    ),
)


def _plan_decode(_: Knobs) -> LaunchPlan:
    def make(width: int) -> Table:
        return launch(
            f"attention_decode<{width}>",
            when=[f"D == {width}"],
            grid=["B * G * SPLITS", "cdiv(R, HEADS)"],
            block=[f"{width // 4} * TEAMS"],
            args=["G", "R", "P", "SPLITS", *DECODE_INPUTS, "sums", "states"],
        )

    joins = launch(
        "join",
        grid=["cdiv(B * G * R * D, 256)"],
        block=[256],
        args=["R", "D", "SPLITS", "B * G * R * D", "sums", "states", "o"],
    )
    scratch: dict[str, Table] = {
        "sums": {"shape": ["B * G * SPLITS * R", "D"], "dtype": "float32"},
        "states": {"shape": ["B * G * SPLITS * R", 2], "dtype": "float32"},
    }
    return LaunchPlan([*(make(width) for width in HEADS), joins], scratch=scratch)


DECODE_INPUTS = ("q", "k", "v", "table", "lengths")
ATTENTION_DECODE = (
    cuda_recipe(
        "attention_decode_gqa",
        "splits",
        "Shares of a sequence go to blocks, whose sums a second kernel joins.",
        template="attention_decode_gqa",
        knobs=(
            make_knob("splits", 1, 4, 8, 16, 32, meaning="shares of a sequence"),
            make_knob("teams", 4, 8, 16, meaning="tokens that a block reads at once"),
            make_knob("heads", 1, 2, 4, 8, meaning="query heads that share a load of keys"),
            EXPONENTIAL,
        ),
        constraints=(),
        default={"splits": 8, "teams": 8, "heads": 4, "exponential": "exp2"},
        plan=_plan_decode,
    ),
)


def _plan_merge(knobs: Knobs) -> LaunchPlan:
    def make(width: int, when: list[str]) -> Table:
        return launch(
            f"merge<{width}>",
            when=when,
            grid=["cdiv(M, ROWS)"],
            block=["TEAM", "ROWS"],
            args=["P", "M", "D", "o", "m", "size", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "D", make))


ATTENTION_MERGE = (
    cuda_recipe(
        "attention_partial_merge",
        "rows",
        "A few threads share a head, whose weights each of them makes.",
        template="attention_partial_merge",
        knobs=(
            make_knob("team", 8, 16, 32, 64, meaning="threads that share a head"),
            make_knob("rows", 1, 2, 4, 8, meaning="heads per block"),
            make_knob("run", 64, 256, meaning="parts that one running sum takes"),
            VECTOR,
            UNROLL,
            EXPONENTIAL,
        ),
        constraints=(fits_block(lambda knobs: product(knobs, "team", "rows")),),
        default={
            "team": 32,
            "rows": 4,
            "run": 256,
            "vector": 4,
            "unroll": 4,
            "exponential": "exp2",
        },
        plan=_plan_merge,
    ),
)


def _plan_linear(_: Knobs) -> LaunchPlan:
    def make(kernel: str, rows: str, columns: str, tensors: list[str]) -> Table:
        across, down = f"cdiv({columns}, TILE)", f"cdiv({rows}, TILE)"
        return launch(
            kernel,
            grid=[f"{across} * {down} * H"],
            block=["TILE * TILE"],
            args=["N", "D", across, down, *tensors],
        )

    sums = make("sum_up", "D", "D + 1", ["k", "v", "state"])
    answers = make("answer", "N", "D", ["q", "state", "o"])
    scratch: dict[str, Table] = {"state": {"shape": ["H", "D", "D + 1"], "dtype": "float32"}}
    return LaunchPlan([sums, answers], scratch=scratch)


LINEAR_ATTENTION = (
    cuda_recipe(
        "linear_attention_relu",
        "two-kernels",
        "States of all heads with the sum of features as their last column; then the answers.",
        template="linear_attention_relu",
        knobs=(
            make_knob("tile", 8, 16, 32, meaning="rows and columns of a tile"),
            make_knob("tokens", 32, 64, 128, meaning="tokens that are staged at once"),
            UNROLL,
        ),
        constraints=(fits_block(lambda knobs: product(knobs, "tile", "tile")),),
        default={"tile": 16, "tokens": 32, "unroll": 8},
        plan=_plan_linear,
    ),
)


def _plan_lowrank(_: Knobs) -> LaunchPlan:
    only = launch(
        "lowrank_key_rope_gemm",
        grid=["H * cdiv(C, CHUNKS) * cdiv(P, WIDTH)"],
        block=["WIDTH * (8 * CHUNKS // EACH)"],
        args=["C", "R", "P", "u", "sv", "chunk", "cos", "sin", "k"],
    )
    return LaunchPlan([only])


LOWRANK_KEYS = (
    cuda_recipe(
        "lowrank_key_rope_gemm",
        "gathered",
        "Rows of u are gathered as they are staged; a thread has both halves of a pair.",
        template="lowrank_key_rope_gemm",
        knobs=(
            make_knob("width", 16, 32, 64, 128, meaning="pairs per block"),
            make_knob("chunks", 1, 2, 4, meaning="chunks per block"),
            make_knob("each", 1, 2, 4, 8, meaning="tokens that a thread has"),
            make_knob("depth", 16, 32, 64, meaning="steps of the rank that are staged at once"),
            UNROLL,
        ),
        constraints=(
            fits_block(
                lambda knobs: product(knobs, "width", "chunks") * 8 // integer(knobs, "each")
            ),
        ),
        default={"width": 64, "chunks": 2, "each": 4, "depth": 32, "unroll": 4},
        plan=_plan_lowrank,
    ),
)


def _plan_neighbors(_: Knobs) -> LaunchPlan:
    def make(width: int) -> Table:
        return launch(
            f"neighbor_attention<{width}>",
            when=[f"D == {width}"],
            grid=["M * H"],
            block=["THREADS"],
            args=["L", "H", "q", "k", "v", "count", "o"],
        )

    return LaunchPlan([make(width) for width in (16, 32, 64)])


NEIGHBOR_ATTENTION = (
    cuda_recipe(
        "neighbor_attention",
        "lists",
        "A block has one head of a list: keys, all scores, then values in shared memory.",
        template="neighbor_attention",
        knobs=(
            make_knob("threads", 32, 64, 128, 256, meaning="threads per block"),
            make_knob("each", 1, 2, 4, 8, meaning="queries that a thread has at once"),
            UNROLL,
            EXPONENTIAL,
        ),
        constraints=(),
        default={"threads": 128, "each": 4, "unroll": 4, "exponential": "exp2"},
        plan=_plan_neighbors,
    ),
)


def _plan_cascade(_: Knobs) -> LaunchPlan:
    heads = launch(
        "attend_in_turn",
        grid=["M"],
        block=["THREADS"],
        args=["H", "W", "G", "D", "x", "w", "conv", "all"],
    )
    projection = launch(
        "project",
        grid=["cdiv(M * H * W, TILE * ROWS) * cdiv(G * D, TILE)"],
        block=["TILE", "TILE"],
        args=["M * H * W", "G * D", "all", "proj", "y"],
    )
    scratch: dict[str, Table] = {"all": {"shape": ["M", "H * W", "G * D"], "dtype": "float32"}}
    return LaunchPlan([heads, projection], scratch=scratch)


CASCADED_ATTENTION = (
    cuda_recipe(
        "cascaded_group_attention",
        "cascade",
        "A block takes an image through all heads in shared memory; then the projection by tiles.",
        template="cascaded_group_attention",
        knobs=(
            make_knob("threads", 64, 128, 256, meaning="threads per block"),
            make_knob("each", 1, 2, 4, 8, meaning="tokens of a thread that share weights"),
            make_knob("tile", 8, 16, 32, meaning="columns of a tile of the projection"),
            make_knob("rows", 1, 2, 4, meaning="rows of a thread there, a tile's width apart"),
            UNROLL,
            EXPONENTIAL,
        ),
        constraints=(),
        default={
            "threads": 256,
            "each": 4,
            "tile": 16,
            "rows": 4,
            "unroll": 4,
            "exponential": "exp2",
        },
        plan=_plan_cascade,
    ),
)

RECIPES: tuple[Recipe, ...] = (
    *ATTENTION_PREFILL,
    *ATTENTION_DECODE,
    *ATTENTION_MERGE,
    *LINEAR_ATTENTION,
    *LOWRANK_KEYS,
    *NEIGHBOR_ATTENTION,
    *CASCADED_ATTENTION,
)
