# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for convolutions, state spaces and encodings."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Constraint, Knobs, Recipe
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import ROWS, THREADS, UNROLL, VECTOR, fits_block, product
from ._recipe import by_width, cuda_recipe, launch, times

EXPONENTIAL = make_knob("exponential", "exp", "exp2", meaning="how e^a is made: expf(a), or exp2f")
DEFAULT: Knobs = {"threads": 256, "vector": 4, "unroll": 2, "exponential": "exp2"}
MOST_SUMS = 32


def _plan_causal(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"causal_conv1d<{width}>",
            when=conditions,
            grid=[f"cdiv(M * C * L, {times('THREADS * UNROLL', width)})"],
            block=["THREADS"],
            args=["M", "C", "L", "x", "w", "bias", "y"],
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "L", make))


CAUSAL_CONV1D = cuda_recipe(
    "causal_conv1d",
    "flat",
    "Steps of all channels as one run of vectors, a few to a thread.",
    template="causal_conv1d",
    knobs=(THREADS, VECTOR, UNROLL, EXPONENTIAL),
    constraints=(),
    default=DEFAULT,
    plan=_plan_causal,
)


def _plan_convolution(_: Knobs) -> LaunchPlan:
    return LaunchPlan(
        [
            launch(
                f"conv2d<{width}>",
                when=[f"R == {width - 1}"],
                grid=["M * cdiv(P * Q, THREADS * PLACES)", "cdiv(F, FILTERS)"],
                block=["THREADS"],
                args=["M", "C", "F", "P", "Q", "x", "w", "y"],
            )
            for width in (3, 5)
        ]
    )


CONV2D_NCHW = cuda_recipe(
    "conv2d_nchw",
    "direct",
    "Filters by places in a thread's registers, taps in shared memory.",
    template="conv2d_nchw",
    knobs=(
        make_knob("threads", 32, 64, 128, 256, meaning="threads per block"),
        make_knob("filters", 4, 8, 16, meaning="filters of a block"),
        make_knob("places", 1, 2, 4, meaning="places of the output of a thread"),
        make_knob("channels", 4, 8, 16, meaning="channels whose taps lie in shared memory"),
    ),
    constraints=(
        Constraint(
            "a thread holds at most 32 sums",
            lambda knobs, _: product(knobs, "filters", "places") <= MOST_SUMS,
        ),
    ),
    default={"threads": 64, "filters": 8, "places": 2, "channels": 8},
    plan=_plan_convolution,
)


def _plan_depthwise(_: Knobs) -> LaunchPlan:
    tiles = "cdiv(W, WIDTH) * cdiv(H, HEIGHT * ROWS)"
    return LaunchPlan(
        [
            launch(
                f"depthwise<{width}>",
                when=[f"R == {width}"],
                grid=[f"M * C * {tiles}"],
                block=["WIDTH", "HEIGHT"],
                args=["M", "C", "H", "W", "x", "w", "y"],
            )
            for width in (3, 5)
        ]
    )


DEPTHWISE_CONV = cuda_recipe(
    "depthwise_conv",
    "tiles",
    "Tiles of an image; a thread goes down a column and keeps the rows that it has read.",
    template="depthwise_conv",
    knobs=(
        make_knob("width", 16, 32, 64, meaning="columns of a tile"),
        make_knob("height", 1, 2, 4, 8, meaning="threads of a tile one below the other"),
        make_knob("rows", 1, 2, 4, 8, meaning="rows of the output of a thread"),
    ),
    constraints=(fits_block(lambda knobs: product(knobs, "width", "height")),),
    default={"width": 32, "height": 4, "rows": 4},
    plan=_plan_depthwise,
)

STATE_ARGS = ("M", "H", "P", "N", "state", "x", "z", "dt", "A", "B", "C", "D", "after", "y")


def _plan_state(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"update<{width}, {knobs['team']}>",
            when=conditions,
            grid=["cdiv(M * H * P, ROWS)"],
            block=["TEAM", "ROWS"],
            args=STATE_ARGS,
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "N", make))


SSM_STATE_UPDATE = cuda_recipe(
    "ssm_state_update",
    "row-team",
    "Neighbouring threads share a row of the state, and join their sums.",
    template="ssm_state_update",
    knobs=(
        make_knob("team", 8, 16, 32, meaning="threads that share a row"),
        *(ROWS, VECTOR, UNROLL, EXPONENTIAL),
    ),
    constraints=(fits_block(lambda knobs: product(knobs, "team", "rows")),),
    default={**DEFAULT, "team": 32, "rows": 4},
    plan=_plan_state,
)


def _plan_scan(knobs: Knobs) -> LaunchPlan:
    return LaunchPlan(
        [
            launch(
                f"ssd_scan<{knobs['team']}>",
                grid=["cdiv(M * H * P, ROWS)"],
                block=["TEAM", "ROWS"],
                args=["M", "L", "H", "P", "N", "x", "dt", "A", "B", "C", "y"],
            )
        ]
    )


MAMBA2_SSD_CHUNK_SCAN = cuda_recipe(
    "mamba2_ssd_chunk_scan",
    "registers",
    "Neighbouring threads keep an element's states in registers and go through all steps.",
    template="mamba2_ssd_chunk_scan",
    knobs=(
        make_knob("team", 4, 8, 16, 32, meaning="threads that share the states of an element"),
        make_knob("states", 2, 4, 8, 16, meaning="states in a thread's registers"),
        *(ROWS, UNROLL, EXPONENTIAL),
    ),
    constraints=(fits_block(lambda knobs: product(knobs, "team", "rows")),),
    default={**DEFAULT, "team": 16, "states": 8, "rows": 4},
    plan=_plan_scan,
)

RECIPES: tuple[Recipe, ...] = (
    CAUSAL_CONV1D,
    CONV2D_NCHW,
    DEPTHWISE_CONV,
    SSM_STATE_UPDATE,
    MAMBA2_SSD_CHUNK_SCAN,
)
