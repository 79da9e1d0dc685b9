"""What the sandbox of this machine enforces in six environments; writes docs/results/isolation.md.

python benchmarks/isolation_table.py [--out docs/results/isolation.md]

Each column is a probe by the canary, in a process that really is that user on a machine that
really lacks that. As root all six can be made; an ordinary user makes the three that are theirs.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kernelwright.sandbox.isolation import landlock
from kernelwright.sandbox.isolation.canary import build_canary
from kernelwright.tests.poorer_machine import (
    NOBODY,
    CannotBeMade,
    command,
    interpreter,
    python_path,
)
from kernelwright.traces.records import CAPABILITIES, UNATTENDED_MINIMUM, Isolation

ENVIRONMENTS = {
    "root": (),
    "root, no bwrap": ("bwrap",),
    "root, no user namespaces": ("userns",),
    "user": ("root",),
    "user, no bwrap": ("root", "bwrap"),
    "user, no user namespaces": ("root", "userns"),
}
"""What each takes away from root on this machine."""

PROBE = """
import sys
from pathlib import Path
from kernelwright.sandbox.isolation import choose, probe
print(probe(choose(), Path(sys.argv[1])).model_dump_json())
"""
SIGNS = {"enforced": "enforced", "partial": "*partial*", "absent": "**absent**"}


def probe(without: tuple[str, ...], canary: Path) -> Isolation:
    """The matrix there. Raises CannotBeMade."""
    is_root = "root" not in without
    if os.geteuid() != 0:
        if is_root:
            raise CannotBeMade("this user is not root")
        without = tuple(name for name in without if name != "root")
    python = interpreter(is_root=is_root, imports="kernelwright.sandbox.isolation")
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        shutil.copy(canary, cache)
        if os.geteuid() == 0 and not is_root:
            for path in (cache, *cache.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        done = subprocess.run(
            command(without, [python, "-c", PROBE, str(cache)]),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": python_path()},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
    if done.returncode != 0:
        raise CannotBeMade((done.stderr.strip().splitlines() or ["no word"])[-1])
    return Isolation.model_validate_json(done.stdout)


def probe_all() -> tuple[dict[str, Isolation], dict[str, str]]:
    """The matrices by environment, and why others could not be made."""
    found: dict[str, Isolation] = {}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        canary = build_canary(Path(name))
        for title, without in ENVIRONMENTS.items():
            try:
                found[title] = probe(without, canary)
            except CannotBeMade as reason:
                missing[title] = str(reason)
            print(title, "done" if title in found else missing[title], file=sys.stderr)
    return found, missing


def table(found: Mapping[str, Isolation]) -> list[str]:
    """Rows by environments."""
    lines = [
        f"| capability | {' | '.join(found)} |",
        f"|---{'|---' * len(found)}|",
        f"| jail | {' | '.join(one.mechanism for one in found.values())} |",
    ]
    for row in CAPABILITIES:
        mark = " †" if row in UNATTENDED_MINIMUM else ""
        states = (SIGNS[one.capabilities[row].state.value] for one in found.values())
        lines.append(f"| `{row}`{mark} | {' | '.join(states)} |")
    fit = ("no" if one.lacking else "yes" for one in found.values())
    return [*lines, f"| fit for unattended work | {' | '.join(fit)} |"]


def reasons(found: Mapping[str, Isolation]) -> list[str]:
    """How each row came about, as the canary tells it."""
    lines = []
    for title, isolation in found.items():
        lines += ["", f"## {title}: {isolation.mechanism}", ""]
        for row, capability in isolation.capabilities.items():
            lines.append(f"- `{row}` {capability.state.value}: {capability.how}")
    return lines


def main() -> None:
    """Probes every environment and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/isolation.md"))
    asked = parser.parse_args()
    found, missing = probe_all()
    lines = [
        "# What the sandbox enforces",
        "",
        f"Made by `make isolation` on {datetime.date.today().isoformat()}: the canary, a hostile "
        "program, was run in the jail that `auto` chooses in each environment, and seen from "
        "outside. † is what unattended work needs; without it nothing runs unless "
        "`--accept-weak-isolation` is given.",
        "",
        f"Machine: Linux {platform.release()}, Landlock {landlock.abi()}, Python "
        f"{platform.python_version()}. Every machine measures its own matrix: see "
        "`kernelwright doctor`.",
        "",
        *table(found),
        *[f"\n{title} could not be made: {reason}." for title, reason in missing.items()],
        *reasons(found),
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
