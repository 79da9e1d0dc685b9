# SPDX-License-Identifier: Apache-2.0
"""CUDA recipes for arithmetic on integers and narrow codes."""

from __future__ import annotations

from .._front_matter import LaunchPlan
from .._knobs import make_knob
from ._knobs import LANES, THREADS, UNROLL
from ._recipe import Planner, cuda_recipe, launch

WARPS = make_knob("rows", 2, 4, 8, 16, meaning="rows per block, a warp each")

TOKENS = make_knob("tokens", 2, 4, 8, 16, meaning="tokens that share a load of weights")

DEPTH = make_knob("depth", 1, 2, 4, 8, meaning="groups whose tables are made at once")
LOOKED_UP = launch(
    "lut_rows",
    grid=["cdiv(M, THREADS)", "N"],
    block=["THREADS"],
    args=["M", "N", "G", "P", "x", "w", "scales", "y"],
)


def _plan_tokens(kernel: str, outputs: str, tokens: str, args: str) -> Planner:
    """A team of threads to each output, some tokens at a time.

    Args:
        outputs, tokens: the axes that count them.
        args: the kernel's, the axes among them.
    """
    only = launch(
        kernel,
        grid=[f"cdiv({outputs}, THREADS // LANES)", f"min(cdiv({tokens}, TOKENS), 65535)"],
        block=["THREADS"],
        args=args.split(),
    )
    return lambda _: LaunchPlan([only])


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
    *(
        cuda_recipe(
            problem,
            "rows",
            f"A team of threads goes along {row}, for a few tokens at once.",
            template=problem,
            knobs=(THREADS, LANES, TOKENS),
            constraints=(),
            default={"threads": 128, "lanes": 32, "tokens": 4},
            plan=plan,
        )
        for problem, row, plan in (
            (
                "apmm_bipolar",
                "the planes of a row",
                _plan_tokens("apmm_rows", "M", "N", "M N G P Q w x y"),
            ),
            (
                "w6ax_gemm",
                "a row of weights",
                _plan_tokens("w6ax_rows", "N", "M", "M N G B x w sx sw y"),
            ),
        )
    ),
    cuda_recipe(
        "lut_gemv",
        "tables",
        "Tables of the sums of four activations with signs in shared memory; a thread has a row.",
        template="lut_gemv",
        knobs=(THREADS, DEPTH),
        constraints=(),
        default={"threads": 64, "depth": 1},
        plan=lambda _: LaunchPlan([LOOKED_UP]),
    ),
)
