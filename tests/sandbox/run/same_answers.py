"""Run as a program, with `plain` or `quick`: what Triton's interpreter makes of some kernels.

Prints a JSON object: by kernel the answers, or what was raised.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
INSIDE = Path(__file__).parents[3] / "sandbox" / "triton_on_cpu"
SOURCE = """
import triton
import triton.language as tl


@triton.jit
def mixed(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    at = tl.arange(0, BLOCK)[None, :]
    inside = (at < n) & (row < 4)
    v = tl.load(x + row * n + at, mask=inside, other=0)
    scale = tl.max(v, 1)[:, None] / 3
    w = tl.where(inside, v * scale - tl.sum(v, 1)[:, None], 1.5).to(tl.float16).to(tl.float32)
    whole = tl.trans(tl.trans(w)) + (row % 3) * 2 + (at.to(tl.int64) << 1)
    tl.store(y + row * n + at, tl.exp(-tl.abs(whole) / 100) + (v > 0), mask=inside)


@triton.jit
def join(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    weight = weight_1 + weight_2
    share = tl.where(weight == 0.0, 0.0, weight_2 / weight)
    return mean_1 + delta * share, m2_1 + m2_2 + delta * delta * weight_1 * share, weight


@triton.jit
def product(a, b):
    return a * b * 0.5


@triton.jit
def reduced(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    ones = tl.full((ROWS, BLOCK), 1.0, tl.float32)
    v = tl.load(x + tl.arange(0, ROWS)[:, None] * n + at[None, :], mask=at[None, :] < n, other=0)
    mean, m2, _ = tl.reduce((v, ones * 0, ones), 1, join)
    tl.store(y + tl.arange(0, ROWS), mean)
    tl.store(y + ROWS + tl.arange(0, ROWS), m2)
    tl.store(y + 2 * ROWS, tl.reduce(v, None, product))
    kept, _, _ = tl.reduce((v, ones * 0, ones), 0, join, keep_dims=True)
    tl.store(y + 4 * ROWS + at[None, :], kept)


@triton.jit
def whole(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * n + tl.arange(0, BLOCK)[None, :]
    ones = tl.full((ROWS, BLOCK), 1.0, tl.float32)
    v = tl.load(x + at, mask=tl.arange(0, BLOCK)[None, :] < n, other=0)
    mean, m2, count = tl.reduce((v, ones * 0, ones), None, join)
    tl.store(y, mean)
    tl.store(y + 1, count)


@triton.jit
def last(a, b):
    return b


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def ordered(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=-9.0)
    tl.store(y, tl.reduce(v, 0, last))
    tl.store(y + 1, tl.reduce(v, 0, larger))
    tl.store(y + 4 + at, tl.associative_scan(v, 0, larger))


@triton.jit
def scanned(x, y, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * n + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + at, mask=tl.arange(0, BLOCK)[None, :] < n, other=1.0)
    s = tl.associative_scan(v, 1, product, reverse=REVERSE)
    tl.store(y + at, s, mask=tl.arange(0, BLOCK)[None, :] < n)


@triton.jit
def odd_tile(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))


@triton.jit
def unlike(x, y, n, BLOCK: tl.constexpr):
    tl.store(y, tl.sum(tl.zeros((BLOCK,), tl.float32) + tl.zeros((2 * BLOCK,), tl.float32), 0))
"""
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mixed", {"ROWS": 4, "BLOCK": 16}),
    ("reduced", {"ROWS": 4, "BLOCK": 16}),
    ("whole", {"ROWS": 4, "BLOCK": 16}),
    ("ordered", {"BLOCK": 16}),
    ("scanned", {"ROWS": 4, "BLOCK": 16, "REVERSE": False}),
    ("scanned", {"ROWS": 4, "BLOCK": 16, "REVERSE": True}),
    ("odd_tile", {"BLOCK": 3}),
    ("unlike", {"BLOCK": 8}),
)


def main() -> None:
    """Runs each kernel once, or says what was raised."""
    import importlib.util

    import torch
    from triton.runtime import interpreter

    spec = importlib.util.spec_from_file_location(
        "inside", INSIDE / "__init__.py", submodule_search_locations=[str(INSIDE)]
    )
    assert spec
    sys.modules["inside"] = importlib.util.module_from_spec(spec)
    from inside import combining, load, types_once  # type: ignore[import-not-found]

    if sys.argv[1] == "quick":
        types_once.install(interpreter)
        combining.grow(interpreter)
    module = load.module(SOURCE)
    x = torch.linspace(-3, 3, 64).sin()
    found: dict[str, Any] = {}
    for name, constants in CALLS:
        y = torch.zeros(96)
        try:
            getattr(module, name)[(1,)](x, y, 13, **constants)
        except Exception as error:
            while error.__cause__ is not None:
                error = error.__cause__
            found[f"{name} {constants}"] = f"{type(error).__name__}: {error}"
        else:
            found[f"{name} {constants}"] = y.tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
