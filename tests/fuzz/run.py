"""Fuzzes for as long as it is given: `python -m kernelwright.tests.fuzz.run --seconds 600`.

Where atheris is installed each target gets its share of the time, led by coverage; else the
targets take turns with inputs that hypothesis draws anew. It stops at the first that fails, shows
the input, and ends with status 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter

from kernelwright.tests.fuzz.catalogue import TARGETS
from kernelwright.tests.fuzz.target import Target, assert_holds

START_S = 6.0
"""What it takes to import everything with atheris looking on."""
BATCH = 50
"""Inputs of one turn: a fraction of a second, so that the end is kept to."""


def main() -> int:
    """0 if nothing was found, 1 if something was, 2 for a target that there is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", default="", help="the name of one target")
    given = parser.parse_args()
    chosen = [target for target in TARGETS if given.only in ("", target.name)]
    if not chosen:
        known = ", ".join(target.name for target in TARGETS)
        sys.stderr.write(f"there is no target named '{given.only}'; known: {known}\n")
        return 2
    if importlib.util.find_spec("atheris"):
        return fuzz_guided(chosen, given.seconds)
    return fuzz(chosen, given.seconds)


def fuzz_guided(targets: list[Target], seconds: float) -> int:
    """Gives each target its share, each in a process of its own."""
    end = time.monotonic() + seconds
    for number, target in enumerate(targets):
        left_s = (end - time.monotonic()) / (len(targets) - number)
        share = max(1, round(left_s - START_S))
        command = [sys.executable, "-m", "kernelwright.tests.fuzz.guided", target.name]
        # libFuzzer would leave the failing input in the working folder.
        with tempfile.TemporaryDirectory() as folder:
            options = [f"-max_total_time={share}", f"-artifact_prefix={folder}/", "-len_control=0"]
            done = subprocess.run([*command, *options], check=False)
        if done.returncode:
            sys.stderr.write(f"{target.name}: failed; the input is above\n")
            return 1
        print(f"{target.name}: {share} s", flush=True)
    return 0


def fuzz(targets: list[Target], seconds: float) -> int:
    """Takes turns until the time is up; each target has one turn at least."""
    tried: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while not tried or time.monotonic() < end:
        for target in targets:
            if tried[target.name] and time.monotonic() >= end:
                break
            try:
                assert_holds(target, BATCH, is_fresh=True)
            except Exception:
                traceback.print_exc()
                sys.stderr.write(f"{target.name}: failed; the smallest input is above\n")
                return 1
            tried[target.name] += BATCH
    for name, count in tried.items():
        print(f"{name}: {count:,} inputs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
