# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for operators on the rows of a dense matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ...recipe import Constraint, Facts, Knob, Knobs, Recipe
from ...targets import WARP
from .._front_matter import LaunchPlan, Table, Value
from .._knobs import integer, make_knob
from ._knobs import ROWS, THREADS, UNROLL, VECTOR, fits_block, product
from ._recipe import Planner, by_width, cuda_recipe, launch, times

TEAM = make_knob("team", 8, 16, 32, 64, 128, 256, 512, meaning="threads that share a row")
ITEMS = make_knob("items", 1, 2, 4, 8, meaning="vectors of a row that a thread holds in registers")
EXPONENTIAL = make_knob("exponential", "exp", "exp2", meaning="how e^a is made: expf(a), or exp2f")
SHORT = 16
"""Elements of a row that a thread goes along alone."""
MOST_HELD = 32
"""Floats of one operand in a thread's registers: three operands still leave room for the rest."""

DEFAULT: Knobs = {
    "team": 32,
    "rows": 4,
    "vector": 4,
    "unroll": 2,
    "items": 4,
    "exponential": "exp2",
    "form": "sigmoid",
    "threads": 256,
    "width": 128,
}


def _alone(knobs: Knobs, _: Facts) -> bool:
    return integer(knobs, "team") <= WARP or knobs["rows"] == 1


def _fits_registers(knobs: Knobs, _: Facts) -> bool:
    return product(knobs, "items", "vector") <= MOST_HELD


COMMON = (
    fits_block(lambda knobs: product(knobs, "team", "rows")),
    Constraint("rows that are shared by more than a warp have a block each", _alone),
)
HELD = (
    *COMMON,
    Constraint(f"a thread holds at most {MOST_HELD} floats of an operand", _fits_registers),
)


def _instance(kernel: str, width: int, *, team: int, rows: int, items: int = 0) -> str:
    last = f", {items}" if items else ""
    return f"{kernel}<{width}, {team}, {rows}{last}>"


def _row_launch(
    kernel: str, tensors: Sequence[str], when: Sequence[str], team: Value, rows: Value
) -> Table:
    return launch(
        kernel,
        when=when,
        grid=[f"cdiv(M, {rows})"],
        block=[team, rows],
        args=["M", "N", *tensors],
    )


def _launch_short_rows(kernel: str, tensors: Sequence[str], knobs: Knobs) -> list[Table]:
    """Rows that are too short for the team: a thread each, or a warp."""
    alone = _instance(kernel, 1, team=1, rows=128)
    launches = [_row_launch(alone, tensors, [f"N <= {SHORT}"], 1, 128)]
    if integer(knobs, "team") > WARP:
        warp = _instance(kernel, 1, team=WARP, rows=4)
        launches.append(_row_launch(warp, tensors, [f"{SHORT} < N < TEAM"], WARP, 4))
    return launches


def _shortest_shared_row(knobs: Knobs) -> str:
    """Elements of the shortest row that the whole team shares."""
    return "TEAM" if integer(knobs, "team") > WARP else str(SHORT + 1)


def _launch_shared_rows(
    kernel: str, tensors: Sequence[str], knobs: Knobs, when: Sequence[str], most: int = 0
) -> list[Table]:
    """Rows that a whole team shares; `most` elements of an operand stay in a thread's registers."""
    team, rows = integer(knobs, "team"), integer(knobs, "rows")

    def make(width: int, conditions: Sequence[str]) -> Table:
        name = _instance(kernel, width, team=team, rows=rows, items=most // width)
        return _row_launch(name, tensors, conditions, "TEAM", "ROWS")

    return by_width(integer(knobs, "vector"), "N", make, when)


def _streaming(kernel: str, *tensors: str) -> Planner:
    def plan(knobs: Knobs) -> LaunchPlan:
        long = _launch_shared_rows(kernel, tensors, knobs, [f"N >= {_shortest_shared_row(knobs)}"])
        return LaunchPlan([*_launch_short_rows(kernel, tensors, knobs), *long])

    return plan


def _plan_holding(held: str, kernel: str, *tensors: str) -> Planner:
    """Rows that fit into registers stay there; longer ones are read again."""

    def plan(knobs: Knobs) -> LaunchPlan:
        most = product(knobs, "items", "vector")
        kept = _launch_shared_rows(
            held, tensors, knobs, [f"{_shortest_shared_row(knobs)} <= N <= TEAM * {most}"], most
        )
        long = _launch_shared_rows(kernel, tensors, knobs, [f"N > max({SHORT}, TEAM * {most})"])
        return LaunchPlan([*_launch_short_rows(kernel, tensors, knobs), *kept, *long])

    return plan


def _recipe(
    problem: str,
    family: str,
    summary: str,
    plan: Planner,
    *more: Knob,
    constraints: tuple[Constraint, ...] = COMMON,
    template: str = "",
) -> Recipe:
    return cuda_recipe(
        problem,
        family,
        summary,
        template=template or problem,
        knobs=(TEAM, ROWS, VECTOR, UNROLL, *more),
        constraints=constraints,
        default=DEFAULT,
        plan=plan,
    )


SOFTMAX = (
    _recipe(
        "softmax",
        "three-pass",
        "Maximum, sum and answer in three passes over a row.",
        _streaming("softmax", "x", "y"),
        EXPONENTIAL,
    ),
    _recipe(
        "softmax",
        "online",
        "Maximum and sum in one pass (Milakov and Gimelshein, arXiv 1805.02867); a second writes.",
        _streaming("softmax_online", "x", "y"),
        EXPONENTIAL,
    ),
    _recipe(
        "softmax",
        "registers",
        "A row is read once and stays in registers; long rows take two passes.",
        _plan_holding("softmax_held", "softmax_online", "x", "y"),
        ITEMS,
        EXPONENTIAL,
        constraints=HELD,
    ),
)

SOFTMAX_BACKWARD = (
    _recipe(
        "softmax_backward",
        "two-pass",
        "A row's sum of y dy; then its gradient.",
        _streaming("softmax_backward", "y", "dy", "dx"),
    ),
    _recipe(
        "softmax_backward",
        "registers",
        "A row is read once and stays in registers; long rows take two passes.",
        _plan_holding("softmax_backward_held", "softmax_backward", "y", "dy", "dx"),
        ITEMS,
        constraints=HELD,
    ),
)

LAYERNORM = (
    _recipe(
        "layernorm",
        "three-pass",
        "Mean, distances from it and answer in three passes over a row.",
        _streaming("layernorm", "x", "gamma", "beta", "y"),
    ),
    _recipe(
        "layernorm",
        "welford",
        "One pass for mean and spread, merged by the update of Chan et al.; a second writes.",
        _streaming("layernorm", "x", "gamma", "beta", "y"),
    ),
    _recipe(
        "layernorm",
        "registers",
        "A row is read once and stays in registers; long rows take three passes.",
        _plan_holding("layernorm_held", "layernorm", "x", "gamma", "beta", "y"),
        ITEMS,
        constraints=HELD,
    ),
)

RMSNORM = (
    _recipe(
        "rmsnorm",
        "two-pass",
        "A row's mean square; then its scaled output.",
        _streaming("rmsnorm", "x", "gamma", "y"),
    ),
    _recipe(
        "rmsnorm",
        "registers",
        "A row is read once and stays in registers; long rows take two passes.",
        _plan_holding("rmsnorm_held", "rmsnorm", "x", "gamma", "y"),
        ITEMS,
        constraints=HELD,
    ),
)

RESIDUAL_ARGS = ("x", "residual", "gamma", "h", "q", "scale")
RESIDUAL_RMSNORM = (
    _recipe(
        "residual_rmsnorm",
        "two-pass",
        "A row's mean square and its largest product with gamma; then its codes.",
        _streaming("residual_rmsnorm", *RESIDUAL_ARGS),
    ),
    _recipe(
        "residual_rmsnorm",
        "registers",
        "A row is read once and stays in registers; long rows take two passes.",
        _plan_holding("residual_rmsnorm_held", "residual_rmsnorm", *RESIDUAL_ARGS),
        ITEMS,
        constraints=HELD,
    ),
)

FORM = make_knob(
    "form", "sigmoid", "tanh", meaning="how the curve is made: s / (1 + e^(-2z)) or tanh"
)
MOST_SHORT = (1 << 31) - (1 << 20)
"""Elements up to which an index of 32 bits reaches beyond the last one, whatever the knobs."""


def _launch_run(
    kernel: str, size: str, args: Sequence[str], width: int, when: Sequence[str]
) -> Table:
    """A run of so many elements in vectors, UNROLL to a thread."""
    return launch(
        kernel,
        when=when,
        grid=[f"cdiv({size}, {times('THREADS * UNROLL', width)})"],
        block=["THREADS"],
        args=args,
    )


def _make_elementwise(
    problem: str, tensors: Sequence[str], columns: str, *more: Knob, rows: int
) -> tuple[Recipe, ...]:
    """Of what each element becomes by itself.

    Args:
        columns: what a thread does that keeps its columns.
        rows: of a tile, by default.
    """

    def plan_flat(knobs: Knobs) -> LaunchPlan:
        def make(index: str, width: int, conditions: Sequence[str]) -> Table:
            kernel, args = f"{problem}<{index}, {width}>", ["M", "N", *tensors]
            return _launch_run(kernel, "M * N", args, width, conditions)

        vector = integer(knobs, "vector")
        short = by_width(vector, "N", lambda *a: make("int", *a), [f"M * N <= {MOST_SHORT}"])
        long = by_width(vector, "N", lambda *a: make("long long", *a), [f"M * N > {MOST_SHORT}"])
        return LaunchPlan([*short, *long])

    def plan_columns(knobs: Knobs) -> LaunchPlan:
        def make(width: int, conditions: Sequence[str]) -> Table:
            return launch(
                f"{problem}<{width}>",
                when=conditions,
                grid=["cdiv(M, ROWS)", f"cdiv(N, {times('WIDTH', width)})"],
                block=["WIDTH", "THREADS // WIDTH"],
                args=["M", "N", *tensors],
            )

        return LaunchPlan(by_width(integer(knobs, "vector"), "N", make))

    return (
        cuda_recipe(
            problem,
            "flat",
            "The whole matrix as one run of vectors, a few to a thread.",
            template=problem,
            knobs=(THREADS, VECTOR, UNROLL, *more),
            constraints=(),
            default=DEFAULT,
            plan=plan_flat,
        ),
        cuda_recipe(
            problem,
            "columns",
            columns,
            template=problem,
            knobs=(THREADS, WIDTH, TILE_ROWS, VECTOR, UNROLL, *more),
            constraints=(WHOLE_ROWS,),
            default={**DEFAULT, "rows": rows},
            plan=plan_columns,
        ),
    )


WIDTH = make_knob("width", 32, 64, 128, 256, meaning="threads side by side in a row")
PAIRS_ACROSS = make_knob("width", 8, 16, 32, 64, meaning="threads side by side in a head")
TILE_ROWS = make_knob("rows", 4, 16, 64, meaning="rows per tile")
WHOLE_ROWS = Constraint(
    "the threads lie in whole rows of the tile, and it has as many",
    lambda knobs, _: (
        1 <= integer(knobs, "threads") // integer(knobs, "width") <= integer(knobs, "rows")
    ),
)
BIAS_GELU = _make_elementwise(
    "bias_gelu",
    ("x", "bias", "y"),
    "A thread keeps the bias of its columns and goes down the rows of a tile.",
    FORM,
    rows=16,
)
SWIGLU = _make_elementwise(
    "swiglu", ("x", "y"), "A thread goes down its columns of a tile of rows.", EXPONENTIAL, rows=4
)

ROPE_ARGS = ("M", "H", "P", "x", "cos", "sin", "y")


def _plan_pairs(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return _launch_run(f"rope<{width}>", "M * H * P", ROPE_ARGS, width, conditions)

    return LaunchPlan(by_width(integer(knobs, "vector"), "P", make))


def _plan_heads(knobs: Knobs) -> LaunchPlan:
    def make(width: int, conditions: Sequence[str]) -> Table:
        return launch(
            f"rope<{width}>",
            when=conditions,
            grid=["cdiv(M, THREADS // WIDTH)", f"cdiv(P, {times('WIDTH', width)})"],
            block=["WIDTH", "THREADS // WIDTH"],
            args=ROPE_ARGS,
        )

    return LaunchPlan(by_width(integer(knobs, "vector"), "P", make))


ROPE = (
    cuda_recipe(
        "rope",
        "flat",
        "The pairs of all heads as one run of vectors, a few to a thread.",
        template="rope",
        knobs=(THREADS, VECTOR, UNROLL),
        constraints=(),
        default=DEFAULT,
        plan=_plan_pairs,
    ),
    cuda_recipe(
        "rope",
        "heads",
        "A thread keeps the angles of its pairs and goes through the heads of a token.",
        template="rope",
        knobs=(THREADS, PAIRS_ACROSS, VECTOR, UNROLL),
        constraints=(),
        default={**DEFAULT, "width": 16},
        plan=_plan_heads,
    ),
)

RECIPES = (
    *SOFTMAX,
    *SOFTMAX_BACKWARD,
    *LAYERNORM,
    *RMSNORM,
    *BIAS_GELU,
    *SWIGLU,
    *ROPE,
    *RESIDUAL_RMSNORM,
)
