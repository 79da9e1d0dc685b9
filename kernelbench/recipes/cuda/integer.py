# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for arithmetic on integers and narrow codes."""

from __future__ import annotations

from .._front_matter import LaunchPlan
from .._knobs import make_knob
from ._knobs import UNROLL
from ._recipe import Planner, cuda_recipe, launch

WARPS = make_knob("rows", 2, 4, 8, 16, meaning="rows per block, a warp each")


def _plan_rows(kernel: str, *args: str) -> Planner:
    """A warp to each row of a matrix."""
    only = launch(
        kernel,
        grid=["cdiv(M, ROWS)"],
        block=[32, "ROWS"],
        args=["M", "N", *args],
    )
    return lambda _: LaunchPlan([only])


RECIPES = (
    cuda_recipe(
        "shiftmax",
        "table",
        "A warp has a row; exponentials of differences to the maximum are looked up.",
        template="shiftmax",
        knobs=(WARPS, UNROLL),
        constraints=(),
        default={"rows": 4, "unroll": 2},
        plan=_plan_rows("shiftmax_rows", "x", "unit", "y"),
    ),
    cuda_recipe(
        "shiftgelu",
        "table",
        "A warp has a row; factors of the 256 differences to its maximum are looked up.",
        template="shiftgelu",
        knobs=(WARPS, UNROLL),
        constraints=(),
        default={"rows": 4, "unroll": 2},
        plan=_plan_rows("shiftgelu_rows", "x", "unit", "y"),
    ),
    cuda_recipe(
        "int_layernorm",
        "rows",
        "A warp has a row, and reads it three times.",
        template="int_layernorm",
        knobs=(WARPS, UNROLL),
        constraints=(),
        default={"rows": 4, "unroll": 2},
        plan=_plan_rows("int_layernorm_rows", "x", "bias", "y"),
    ),
)
