# SPDX-License-Identifier: Apache-2.0
"""What torch offers on CPUs for a vector times 4-bit weights, beside our best kernel.

    python benchmarks/int4_libraries.py [--seconds 40] [--out docs/results/int4-libraries.md]

`_weight_int4pack_mm_for_cpu` has packed weights, groups of 32 and zero points as `gemv_w4a16` has,
in each type that it takes. It is no baseline of the problem: in bfloat16 it rounds scales to eight
bits, which no gate for float16 passes. Each call is timed in a process of its own; ours is the
winner of a campaign, timed by the referee beside the problem's baselines.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import machine

M, K, GROUP = 4096, 4096, 32
TYPES = ("float32", "float16", "bfloat16")
CALLS = 30


def time_packed(dtype: str) -> dict[str, Any]:
    """Microseconds of a call and its largest error, as a share of the largest answer."""
    import torch

    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    codes = torch.randint(0, 16, (M, K), dtype=torch.int32)
    scales = (torch.rand(M, K // GROUP) * 0.01).half().float()
    zeros = torch.randint(0, 16, (M, K // GROUP)).float()
    x = torch.randn(1, K).half().float()
    weights = ((codes.view(M, -1, GROUP) - zeros[..., None]) * scales[..., None]).view(M, K)
    right = x.double() @ weights.double().t()
    # It wants (code - 8) scale + zero: 8 less its own zero point, times the scale.
    pairs = torch.stack([scales, (8 - zeros) * scales], -1).transpose(0, 1).contiguous().to(kind)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
    given = x.to(kind)

    def call() -> torch.Tensor:
        return torch.ops.aten._weight_int4pack_mm_for_cpu(given, packed, GROUP, pairs)

    try:
        worst = float((call().double() - right).abs().max() / right.abs().max())
    except RuntimeError as error:
        return {"why": str(error).splitlines()[0]}
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return {"us": statistics.median(took) * 1e6, "error": worst}


def run_alone(dtype: str) -> dict[str, Any]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--type", dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def find_ours(seconds: int) -> dict[str, Any]:
    """The verdict's measurement of a campaign's winner on the same sizes."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "kernelwright", "run", "gemv_w4a16", "--target", "cpu"]
        more = ["--workload", "4096x4096", "--max-time", f"{seconds}s", "--home", home, "--json"]
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        shown = [sys.executable, "-m", "kernelwright", "show", "@best", "--home", home, "--json"]
        found = json.loads(subprocess.run(shown, capture_output=True, check=True).stdout)
        timed = [each for each in found["verdicts"] if each["measurements"]]
        measurement: dict[str, Any] = timed[-1]["measurements"][0]
        return measurement


def main() -> None:
    """Prints one library's figures, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--type", choices=TYPES)
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/results/int4-libraries.md"))
    given = parser.parse_args()
    if given.type:
        print(json.dumps(time_packed(given.type)))
        return
    rows = {dtype: run_alone(dtype) for dtype in TYPES}
    given.out.write_text(write_page(find_ours(given.seconds), rows), "utf-8")


def write_page(ours: dict[str, Any], rows: dict[str, dict[str, Any]]) -> str:
    """The table, ours first."""
    best = ours["candidate"]["median_us"]
    lines = [
        "# A vector times 4-bit weights by torch on CPUs",
        "",
        f"Made by `python benchmarks/int4_libraries.py` on {datetime.date.today()}: {machine()}. "
        f"{M} x {K} weights in groups of {GROUP} with zero points. `int4pack` is torch's "
        "`_weight_int4pack_mm_for_cpu`, each type in a process of its own, the median of "
        f"{CALLS} calls; its error is the largest one as a share of the largest answer.",
        "",
        "| who | µs of a call | ours is … times as fast | error |",
        "|---|---|---|---|",
        f"| ours, `gemv_w4a16` | {best:,.0f} | | |",
    ]
    for name, timing in ours["baselines"].items():
        took = timing["median_us"]
        lines.append(f"| {name} (baseline) | {took:,.0f} | {took / best:.1f} | |")
    for dtype, found in rows.items():
        if "us" in found:
            figures = f"{found['us']:,.0f} | {found['us'] / best:.1f} | {found['error']:.2%}"
        else:
            figures = f"{found['why']} | | "
        lines.append(f"| int4pack, {dtype} | {figures} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
