# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for layers as servers and mixtures of experts call them."""

from __future__ import annotations

from collections.abc import Callable

from ...recipe import Constraint, Facts, Knobs, Recipe
from ...targets import WARP
from .._front_matter import LaunchPlan, Table
from .._knobs import integer, make_knob
from ._knobs import LANES, ROWS, THREADS, UNROLL, VECTOR, fits_block, fits_shared, product
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


def _plan_skinny(knobs: Knobs) -> LaunchPlan:
    return LaunchPlan(
        by_width(
            integer(knobs, "vector"),
            "K",
            lambda width, when: launch(
                f"skinny_gemm<{width}>",
                when=when,
                grid=["cdiv(N, THREADS // LANES)", "cdiv(M, TOKENS)"],
                block=["THREADS"],
                args=["M", "N", "K", "X", "W", "Y"],
            ),
        )
    )


def recipe_of_segments(problem: str, summary: str, *indices: str) -> Recipe:
    """Products of segments of rows, each with weights of its own.

    Args:
        indices: what the kernel takes between the factors and the answers.
    """

    def plan(_: Knobs) -> LaunchPlan:
        only = launch(
            problem,
            grid=["cdiv(N, TILE) * (cdiv(M, TILE) + min(E, M))"],
            block=["TILE * TILE // EACH"],
            args=["M", "N", "K", "E", "X", "W", *indices, "Y"],
        )
        return LaunchPlan([only])

    return cuda_recipe(
        problem,
        "tiled",
        summary,
        template="grouped_gemm",
        knobs=(
            make_knob("tile", 16, 32, 64, meaning="rows and columns of Y per block"),
            make_knob("each", 2, 4, 8, meaning="rows of them that a thread has"),
            make_knob("depth", 8, 16, 32, meaning="steps of the inner dimension at a time"),
        ),
        constraints=(
            fits_block(lambda knobs: integer(knobs, "tile") ** 2 // integer(knobs, "each")),
            fits_shared(lambda knobs: 8 * integer(knobs, "tile") * (integer(knobs, "depth") + 1)),
        ),
        default={"tile": 32, "each": 4, "depth": 16},
        plan=plan,
        is_gathered=len(indices) > 1,
    )


def _plan_monarch(_: Knobs) -> LaunchPlan:
    grid = ["cdiv(M, TOKENS)", "B", "cdiv(P, WIDTH)"]
    return LaunchPlan(
        [
            launch(kernel, grid=grid, block=["WIDTH"], args=["M", "B", "P", *args])
            for kernel, args in (
                ("monarch_first", ("x", "R", "h")),
                ("monarch_second", ("h", "L", "y")),
            )
        ],
        {"h": {"shape": ["M", "B", "P"], "dtype": "float32"}},
    )


EVICTED = ("k", "v", "position", "k_kept", "v_kept", "position_kept")
FEW = 64
"""Tokens that a warp ranks by itself."""


def _plan_selection(
    tokens: str, select: list[str], rows: str, gather: list[str], scratch: dict[str, Table]
) -> Callable[..., LaunchPlan]:
    """The plan of what keeps the highest scores.

    Args:
        tokens: scores of a row.
        select, gather: what kernels take that select, and that copy; the first is how many rows of
            scores there are.
        rows: that stay, of all.
    """

    def plan(knobs: Knobs) -> LaunchPlan:
        few = launch(
            "rank_tokens",
            when=[f"{tokens} <= {FEW}"],
            grid=[f"cdiv({select[0]}, THREADS // {WARP})"],
            block=["THREADS"],
            args=select,
        )
        many = launch(
            "select_tokens",
            when=[f"{tokens} > {FEW}"],
            grid=[select[0]],
            block=[f"min(THREADS, {WARP} * cdiv({tokens}, {WARP}))"],
            args=select,
        )
        copies = by_width(
            integer(knobs, "vector"),
            "D",
            lambda width, when: launch(
                f"gather_tokens<{width}>",
                when=when,
                grid=[f"cdiv({rows}, ROWS)"],
                block=["ROWS * LANES"],
                args=gather,
            ),
        )
        return LaunchPlan([few, many, *copies], scratch)

    return plan


def _plan_route(knobs: Knobs) -> LaunchPlan:
    blocks, count = "cdiv(M * K, CHUNK)", "M * K"
    steps = [
        launch(kernel, grid=[grid], block=[block], args=args)
        for kernel, grid, block, args in (
            ("count_choices", blocks, "THREADS", [count, "E", "expert", "counts"]),
            ("add_up", 1, "THREADS", [blocks, "E", "counts", "offsets"]),
            (
                "place_choices",
                blocks,
                32,
                [count, "E", "expert", "weight", "counts", "offsets", "place", "gate"],
            ),
        )
    ]
    copies = by_width(
        integer(knobs, "vector"),
        "D",
        lambda width, when: launch(
            f"gather_tokens<{width}>",
            when=when,
            grid=[f"cdiv({count}, ROWS)"],
            block=["ROWS * LANES"],
            args=[count, "K", "D", "x", "place", "rows"],
        ),
    )
    scratch: dict[str, Table] = {"counts": {"shape": [blocks, "E"], "dtype": "int32"}}
    return LaunchPlan([*steps, *copies], scratch)


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
    cuda_recipe(
        "skinny_gemm",
        "row-team",
        "Threads of a team go along a row of weights, once for several tokens.",
        template="skinny_gemm",
        knobs=(
            LANES,
            THREADS,
            make_knob("tokens", 2, 4, 8, 16, meaning="tokens that share a row of weights"),
            VECTOR,
            UNROLL,
        ),
        constraints=(),
        default={"lanes": 32, "threads": 128, "tokens": 8, "vector": 4, "unroll": 2},
        plan=_plan_skinny,
    ),
    recipe_of_segments(
        "grouped_gemm",
        "Tiles of each expert's rows in shared memory; a block finds its expert by counting tiles.",
        "seg_ptr",
    ),
    cuda_recipe(
        "monarch_mm",
        "two-step",
        "The blocks of R, then those of L on what lies at one position: no permutation is made.",
        template="monarch_mm",
        knobs=(
            make_knob("width", 32, 64, 128, meaning="positions per block"),
            make_knob("tokens", 2, 4, 8, 16, meaning="tokens per block"),
            make_knob("depth", 8, 16, 32, meaning="columns of a block of R at a time"),
            UNROLL,
        ),
        constraints=(
            fits_shared(
                lambda knobs: (
                    4
                    * (
                        integer(knobs, "width") * (integer(knobs, "depth") + 1)
                        + product(knobs, "tokens", "depth")
                    )
                )
            ),
        ),
        default={"width": 32, "tokens": 8, "depth": 16, "unroll": 4},
        plan=_plan_monarch,
    ),
    *(
        cuda_recipe(
            problem,
            "radix",
            "A block finds the last score that stays by its bytes; tokens are copied in order.",
            template=problem,
            knobs=(THREADS, ROWS, LANES, VECTOR),
            constraints=(fits_block(lambda knobs: product(knobs, "rows", "lanes")),),
            default={"threads": 256, "rows": 4, "lanes": 32, "vector": 4},
            plan=plan,
        )
        for problem, plan in (
            (
                "token_topk_gather",
                _plan_selection(
                    "5 * G",
                    ["B", "G", "W", "score", "kept"],
                    "B * W * G",
                    ["B", "G", "D", "W", "kept", "features", "y"],
                    {},
                ),
            ),
            (
                "kv_evict_topk",
                _plan_selection(
                    "(C + E)",
                    ["H", "C", "E", "S", "score", "kept"],
                    "H * (C + S)",
                    ["H", "C", "E", "S", "D", "kept", *EVICTED],
                    {"kept": {"shape": ["H", "C"], "dtype": "int32"}},
                ),
            ),
        )
    ),
    cuda_recipe(
        "moe_route_permute",
        "counting",
        "Counts of each chunk, their sums, places by warps that go in order; then rows are copied.",
        template="moe_route_permute",
        knobs=(
            make_knob("chunk", 128, 256, 512, 1024, meaning="choices that a warp goes over"),
            *(THREADS, ROWS, LANES, VECTOR),
        ),
        constraints=(fits_block(lambda knobs: product(knobs, "rows", "lanes")),),
        default={"chunk": 256, "threads": 256, "rows": 4, "lanes": 32, "vector": 4},
        plan=_plan_route,
    ),
)
