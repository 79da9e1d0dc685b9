# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for layers as servers and mixtures of experts call them."""

from __future__ import annotations

from ...recipe import Constraint, Facts, Knobs, Recipe
from ...targets import WARP
from .._front_matter import LaunchPlan
from .._knobs import integer, make_knob
from ._knobs import ROWS, UNROLL, VECTOR, fits_block, product
from ._recipe import by_width, cuda_recipe, launch

TEAM = make_knob("team", 8, 16, 32, 128, 256, meaning="threads that share a row")


def _is_one_row(knobs: Knobs, _: Facts) -> bool:
    return integer(knobs, "team") <= WARP or knobs["rows"] == 1


def _plan_gemv(knobs: Knobs) -> LaunchPlan:
    return LaunchPlan(
        by_width(
            integer(knobs, "vector"),
            "K",
            lambda width, when: launch(
                f"gemv<{knobs['team']}, {knobs['rows']}, {width}>",
                when=when,
                grid=["cdiv(M, ROWS)"],
                block=["TEAM", "ROWS"],
                args=["M", "K", "A", "x", "y"],
            ),
        )
    )


RECIPES: tuple[Recipe, ...] = (
    cuda_recipe(
        "gemv",
        "row-team",
        "Threads of a team go along a row, and join their sums.",
        template="gemv",
        knobs=(TEAM, ROWS, VECTOR, UNROLL),
        constraints=(
            fits_block(lambda knobs: product(knobs, "team", "rows")),
            Constraint("warps that share a row have a block to themselves", _is_one_row),
        ),
        default={"team": 32, "rows": 4, "vector": 4, "unroll": 4},
        plan=_plan_gemv,
    ),
)
