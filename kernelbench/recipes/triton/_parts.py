# SPDX-License-Identifier: Apache-2.0
"""What the Triton recipes share: knobs, constraints, and how a file is put together.

Sizes of tiles are expressions of the launch plan, so that one source fits narrow and wide workloads
alike: a tile holds TILE elements whatever the shape, and rows make up for what columns do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...languages import TRITON
from ...recipe import Constraint, Facts, Knob, Knobs, Recipe
from .._front_matter import LaunchPlan, Table, Value, front_matter
from .._knobs import integer, make_knob
from .._render import body, check

TILE = make_knob("tile", 4096, 8192, 16384, meaning="elements of a tile, held by one program")
WARPS = make_knob("num_warps", 4, 8, 16, meaning="warps that share a tile")
STAGES = make_knob("stages", 1, 2, 3, meaning="turns of a loop whose loads are under way at once")
MOST_EACH, LEAST_EACH = 64, 8
"""Elements of a tile for one thread: more do not fit in 255 registers beside their addresses, fewer
leave no independent loads in flight."""
WARP = 32

FILL = 256
"""Programs that a device should have, as long as there are rows for them."""

Plan = Callable[[Knobs], LaunchPlan]


def _fits_threads(knobs: Knobs, _: Facts) -> bool:
    each = integer(knobs, "tile") // (WARP * integer(knobs, "num_warps"))
    return LEAST_EACH <= each <= MOST_EACH


TILE_FITS = Constraint("each thread has 8 to 64 elements of the tile", _fits_threads)


def rows_of(wide: str) -> str:
    """The expression for the rows of a tile that is `wide` elements wide."""
    return f"max(1, min(next_pow2(M) // {FILL}, TILE // {wide}))"


def launch(
    kernel: str,
    *,
    grid: Sequence[str],
    args: Sequence[Value],
    constants: Mapping[str, Value],
    num_warps: int,
    num_stages: int = 1,
    when: str = "",
) -> Table:
    """One `[[launch]]`."""
    condition: Table = {"when": when} if when else {}
    return {
        "kernel": kernel,
        **condition,
        "grid": grid,
        "args": args,
        "constexpr": constants,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


def triton_recipe(
    problem: str,
    family: str,
    summary: str,
    *,
    plan: Plan,
    knobs: tuple[Knob, ...],
    constraints: tuple[Constraint, ...] = (),
    default: Knobs,
    **values: object,
) -> Recipe:
    """A recipe whose template is `triton/<problem>.py.j2`.

    Args:
        plan: The launches for some knobs. Its expressions see the knobs in capitals.
        default: May hold more than the recipe's knobs.
        values: What the template asks for beside `family`.
    """

    def render(given: Knobs) -> str:
        check(family, given, knobs)
        ordered = {knob.name: given[knob.name] for knob in knobs}
        numbers = {name.upper(): integer(given, name) for name in ordered}
        head = front_matter(TRITON, family, ordered, plan=plan(given), plan_knobs=numbers)
        return head + body(f"triton/{problem}.py.j2", family=family, **values)

    return Recipe(
        problem=problem,
        family=family,
        language=TRITON.name,
        summary=summary,
        knobs=knobs,
        render=render,
        constraints=constraints,
        default={knob.name: default[knob.name] for knob in knobs},
    )
