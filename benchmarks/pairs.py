"""Pairs of kernels whose order is known, and what the model of time says of them.

    python benchmarks/pairs.py [--out docs/results/model-pairs.md]

No GPU is needed: the pairs stand in tests/verifier/order/pairs.toml, measured times in
benchmarks/records. CUDA kernels are emulated for their counts, Triton's are not.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from itertools import groupby
from pathlib import Path

from machine import machine

from kernelwright.kernelbench.products import device_of
from kernelwright.tests.verifier.order.known import (
    MARGIN,
    TARGET,
    Kernel,
    Pair,
    open_emulated,
    profile,
    read_pairs,
)
from kernelwright.verifier.stands.emulated import EmulatedStand


def row(stand: EmulatedStand, pair: Pair) -> tuple[str, bool]:
    """A line of the table, and whether the pair is told apart."""
    slow, fast = (modelled(stand, kernel) for kernel in (pair.slow, pair.fast))
    took = [kernel.measured_us for kernel in (pair.slow, pair.fast)]
    measured = f"{took[0] / took[1]:.2f}" if took[0] and took[1] else ""
    ratio = slow / fast
    is_told = ratio >= MARGIN
    outcome = "told" if is_told else f"**missed**: {pair.missed}"
    cells = [
        f"{pair.slow.problem}, {pair.slow.language}",
        pair.name,
        f"{slow:.1f}",
        f"{fast:.1f}",
        f"{ratio:.2f}",
        measured,
        outcome,
        pair.source,
    ]
    return f"| {' | '.join(cells)} |", is_told


def modelled(stand: EmulatedStand, kernel: Kernel) -> float:
    """Its time by the model, in microseconds."""
    found = profile(stand, kernel).get("modelled_us")
    assert found is not None
    return found


def page(rows: list[str], told: int) -> str:
    """The whole page."""
    sheet = device_of(TARGET)
    assert sheet is not None
    return "\n".join(
        [
            "# Pairs of known order",
            "",
            f"Made by `python benchmarks/pairs.py` on {datetime.date.today().isoformat()}: "
            f"{machine()}. Modelled for {sheet.name}, in µs, each on its problem's default "
            "workload; nothing was timed here. Measured ratios are those of the H200's record "
            "([model.md](model.md)); of `gemm`'s naive kernel an earlier form was measured. A pair "
            f"is told apart from a ratio of {MARGIN} on, which is how far apart the model has "
            "kernels that the device takes equally long for.",
            "",
            f"{told} of {len(rows)} are told apart.",
            "",
            "| problem | what the faster one has | slower | faster | ratio | measured | | by |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            "Row caching alone (GE-SpMM's `crc`) is no pair here: on the H200 it took 49.1 µs and "
            "the naive kernel 45.1, against the order of its paper, which had older devices.",
            "",
        ]
    )


def main() -> int:
    """Writes the page; status 1 where a pair is told otherwise than the table has it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/model-pairs.md"))
    asked = parser.parse_args()
    rows, told, is_as_known = [], 0, True
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        by_task = groupby(read_pairs(), lambda pair: (pair.slow.problem, pair.slow.language))
        for key, group in by_task:
            with open_emulated(*key, Path(folder)) as stand:
                for pair in group:
                    text, is_told = row(stand, pair)
                    rows.append(text)
                    told += is_told
                    is_as_known &= is_told == (not pair.missed)
                    print(text, file=sys.stderr, flush=True)
    asked.out.write_text(page(rows, told), "utf-8")
    return 0 if is_as_known else 1


if __name__ == "__main__":
    sys.exit(main())
