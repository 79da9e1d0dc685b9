"""Which library is the best for a dense product on this machine's CPUs, float32.

    python benchmarks/dense_libraries.py [--rounds 5] [--seconds 1.5] [--out ...]

For each shape every library computes the same product in a process of its own (two thread pools in
one process take turns at spinning), in turn over the rounds; the table has the median of the
processes' medians. Baselines of `gemm` are called as the referee calls them. `oneDNN packed` has B
in the layout that it likes, made outside of the timed call; `torch.compile max-autotune` is
TorchInductor's own C++ template, which it has for weights only that never change.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import BaselineCall

SHAPES = (
    (512, 512, 512),
    (1024, 256, 768),
    (1024, 1024, 1024),
    (64, 4096, 4096),
    (1, 1000, 2048),
)
"""M, N, K."""
BASELINES = ("torch eager", "numpy", "oneDNN")
OTHERS = ("oneDNN packed", "torch.compile max-autotune")


def product(library: str, shape: tuple[int, int, int]) -> Callable[[], object]:
    """One product of this shape by this library, with all that is made once made."""
    import torch

    m, n, k = shape
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((m, k), (k, n)))
    if library in BASELINES:
        baseline = next(x for x in registry.get("gemm").baselines if x.name == library)
        axes = {"M": m, "N": n, "K": k}
        return baseline.prepare(
            BaselineCall(axes, {"A": a, "B": b}, {"C": np.empty((m, n), np.float32)})
        )
    left, weight = torch.from_numpy(a), torch.from_numpy(b).t().contiguous()
    if library == "oneDNN packed":
        ops = torch.ops.mkldnn
        packed = ops._reorder_linear_weight(weight, m)
        return lambda: ops._linear_pointwise(left, packed, None, "none", [], "")
    import torch._inductor.config as config

    config.freezing, config.max_autotune, config.max_autotune_gemm_backends = True, True, "CPP"
    layer = torch.nn.Linear(k, n, bias=False).eval()
    layer.weight.data.copy_(weight)
    compiled = torch.compile(layer, dynamic=False, fullgraph=True)
    return lambda: compiled(left)


def time_here(library: str, shape: tuple[int, int, int], seconds: float) -> float:
    """Median microseconds of a call in this process."""
    import torch

    spent = []
    with torch.no_grad():
        call = product(library, shape)
        call()
        ends = time.perf_counter() + seconds
        while time.perf_counter() < ends or len(spent) < 5:
            start = time.perf_counter_ns()
            call()
            spent.append(time.perf_counter_ns() - start)
    return statistics.median(spent) / 1000


def time_apart(library: str, shape: tuple[int, int, int], seconds: float) -> float:
    """The same in a process of its own."""
    asked = [sys.executable, __file__, "--seconds", str(seconds), "--alone", library]
    done = subprocess.run(
        [*asked, "--shape", *map(str, shape)], check=True, capture_output=True, text=True
    )
    return float(done.stdout.splitlines()[-1])


def line_of(shape: tuple[int, int, int], found: dict[str, list[float]]) -> str:
    """A shape's line of the table."""
    medians = {library: statistics.median(times) for library, times in found.items()}
    best = min(medians.values())
    ours = min(medians[library] for library in BASELINES)
    cells = [f"{each:,.0f}" for each in medians.values()]
    return f"| {'×'.join(map(str, shape))} | {' | '.join(cells)} | {best / ours:.2f} |"


def page(lines: list[str], rounds: int) -> str:
    """The whole page."""
    heads = [*(f"{name} (baseline)" for name in BASELINES), *OTHERS]
    return "\n".join(
        [
            "# Libraries for a dense product",
            "",
            f"Made by `make dense-libraries` on {datetime.date.today()}: {machine()}. float32, "
            f"µs of a call: the median of {rounds} processes, each with the median of its own. "
            "The last column is the best of all over the best baseline of `gemm`: below 1 another "
            "library would be the better baseline. TorchInductor's max-autotune "
            "has a template for weights that never change only; what it compiles for two inputs "
            "calls the library that eager calls.",
            "",
            f"| M×N×K | {' | '.join(heads)} | best over best baseline |",
            "|---|" + "---|" * (len(heads) + 1),
            *lines,
            "",
        ]
    )


def main() -> None:
    """Times all, or one library where it is asked for alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/dense-libraries.md"))
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--shape", type=int, nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(time_here(asked.alone, tuple(asked.shape), asked.seconds))
        return
    lines = []
    for shape in SHAPES:
        found: dict[str, list[float]] = {library: [] for library in (*BASELINES, *OTHERS)}
        for _ in range(asked.rounds):
            for library, times in found.items():
                times.append(time_apart(library, shape, asked.seconds))
        lines.append(line_of(shape, found))
        print(lines[-1], flush=True)
    asked.out.write_text(page(lines, asked.rounds))


if __name__ == "__main__":
    main()
