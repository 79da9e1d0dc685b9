"""How long `kernelwright --help` takes, beside the least that any Python command takes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 20


def median_ms(command: list[str]) -> float:
    """The median wall time of RUNS runs of a command, in milliseconds."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def main() -> None:
    """Prints both figures."""
    for title, tail in (
        ("kernelwright --help", ["-m", "kernelwright", "--help"]),
        ("python -c pass", ["-c", "pass"]),
    ):
        print(f"{title:22} {median_ms([sys.executable, *tail]):6.0f} ms (median of {RUNS})")


if __name__ == "__main__":
    main()
