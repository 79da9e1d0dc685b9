"""How near right kernels come to the gates that wrong ones are to fail.

    python benchmarks/headroom.py [--seconds 60] [--seed 1] [--out FILE] [NAME …]

The honest kernels of tests/honest and the recipes for CPUs, with chosen knobs, are called in this
process on the referee's hidden shapes and families of inputs, and their answers held against every
gate. A ratio of 1 is a right kernel that is called wrong; such a call is printed with what brings
it back. Ends with status 1 where there was one.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import itertools
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.builders import cpp
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import choose
from kernelwright.traces.records import Check, Depth
from kernelwright.verifier.stands.programs import pattern_plan
from kernelwright.verifier.truth import gates, poison, trials

HONEST = Path(__file__).resolve().parent.parent / "tests" / "honest"
VARIANTS = 2
"""Of each recipe, beside the one with its first knobs."""
TOLD = 10
"""Calls that were called wrong and are printed, of each problem."""
SHAPES = trials.SHAPES[Depth.FULL]
"""Hidden shapes that are drawn before the series of them starts again, as in a verification."""


@dataclass
class Found:
    """What a problem's calls came to."""

    calls: int = 0
    kernels: int = 0
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Gate → the largest ratio to its limit, and where that was."""
    failed: list[str] = field(default_factory=list)

    def see(self, check: Check, where: str) -> None:
        """Takes up one check of one answer."""
        if not check.passed:
            self.failed.append(f"{where}: {check.name}: {check.detail}")
        if check.figure is not None and check.limit:
            ratio = check.figure / check.limit
            self.worst[check.name] = max(self.worst.get(check.name, (0.0, "")), (ratio, where))


def sources(problem: Problem, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Right kernels for CPUs by their names."""
    for kernel in tomllib.loads((HONEST / "native.toml").read_text("utf-8"))["kernel"]:
        if kernel["problem"] == problem.name:
            text = (HONEST / kernel["file"]).read_text("utf-8")
            # One that prepares a pattern first has another signature.
            if pattern_plan(problem, text) is None:
                yield kernel["file"], text
    for recipe in recipes_for(problem.name):
        space = list(recipe.space({"cpus": 2.0, "vector_bytes": 32.0}))
        chosen = rng.choice(len(space), min(VARIANTS, len(space)), replace=False)
        for knobs in [recipe.first_knobs(), *(space[i] for i in chosen)]:
            yield f"{recipe.family} {knobs}", recipe.render(knobs)


class Kernel:
    """A built kernel in this process."""

    def __init__(self, problem: Problem, source: str, cache: Path) -> None:
        """Raises SystemExit where it does not build."""
        built = cpp.build(Workshop(choose(), cache), source, cpp.prototype(problem), problem.name)
        if isinstance(built, BuildFailed):
            raise SystemExit(f"{problem.name}: {built.reason}\n{built.log}")
        library = cache / f"{built.sha256}.loaded.so"
        if not library.exists():  # two knobs may make one program, and that one is loaded
            library.write_bytes(built.artefact)
        self._problem = problem
        self._entry = ctypes.CDLL(str(library)).kw_entry

    def __call__(
        self, structure: Structure, inputs: dict[str, np.ndarray], pattern: int
    ) -> dict[str, np.ndarray]:
        """The outputs, which were filled with the pattern before."""
        given = {**structure.arrays, **inputs}
        held = {name: np.ascontiguousarray(array) for name, array in given.items()}
        outputs = {
            tensor.name: np.empty(tensor.extent(structure.axes), tensor.dtype)
            for tensor in self._problem.outputs
        }
        for array in outputs.values():
            poison.fill(array, pattern)
        integers = [ctypes.c_int(structure.axes[axis]) for axis in self._problem.axes]
        arrays = [(held | outputs)[tensor.name] for tensor in self._problem.tensors]
        places = [ctypes.addressof(one) for one in integers] + [a.ctypes.data for a in arrays]
        self._entry((ctypes.c_void_p * len(places))(*places))
        return outputs


def measure(problem: Problem, seconds: float, seed: int, cache: Path) -> Found:
    """Calls right kernels of a problem for so long."""
    rng = np.random.default_rng(seed)
    kernels = [(name, Kernel(problem, text, cache)) for name, text in sources(problem, rng)]
    found = Found(kernels=len(kernels))
    others = tuple(
        (one.name, problem.structure(one)) for one in problem.workloads if one.kind == "adversarial"
    )
    small = problem.structure(problem.workload("tiny"))
    stage = trials.Stage(problem, small, "tiny", others)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        drawn = itertools.islice(trials.hidden_shapes(stage, rng), SHAPES)
        for shape, structure in [*stage.others, ("tiny", small), *drawn]:
            family = problem.families[int(rng.integers(len(problem.families)))]
            item = trials.make_item(problem, structure, family, rng)
            name, kernel = kernels[int(rng.integers(len(kernels)))]
            pattern = poison.choose(rng)
            outputs = kernel(structure, item.inputs, pattern)
            where = f"{name} on {shape}, {family}"
            for output, expected in item.expected.items():
                for check in gates.check_output(
                    output, outputs[output], expected, problem.precision, family, poison=pattern
                ):
                    found.see(check, where)
            found.calls += 1
    return found


def page(found: dict[str, Found], seconds: float, seed: int) -> str:
    """The table."""
    columns = (gates.SCALED, gates.NRMSE, gates.PROBE)
    lines = [
        "# How near right kernels come to the gates",
        "",
        f"Made by `make headroom` on {datetime.date.today()}, {seconds:g} s for each problem, seed "
        f"{seed}. A ratio is an answer's error over what its gate allows, the largest of all "
        "calls; from 1 on a right kernel would be called wrong. Kernels that prepare a pattern are "
        "not among them.",
        "",
        f"Machine: {machine()}.",
        "",
        "| problem | kernels | calls | called wrong | " + " | ".join(columns) + " |",
        "|---|---|---|---|" + "---|" * len(columns),
    ]
    for name, one in found.items():
        ratios = [f"{one.worst[c][0]:.2f}" if c in one.worst else "" for c in columns]
        lines.append(
            f"| {name} | {one.kernels} | {one.calls} | {len(one.failed)} | "
            + " | ".join(ratios)
            + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measures the problems asked for; writes the page where all were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="problems; without: all")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/headroom.md"))
    asked = parser.parse_args()
    found: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in asked.names or registry.names():
            one = measure(registry.get(name), asked.seconds, asked.seed, Path(folder))
            found[name] = one
            for gate, (ratio, where) in sorted(one.worst.items()):
                print(f"{name}: {gate}: {ratio:.3f} ({where})", flush=True)
            for line in one.failed[:TOLD]:
                print(f"{name}: CALLED WRONG: {line}", flush=True)
    text = page(found, asked.seconds, asked.seed)
    print(text)
    if not asked.names:
        asked.out.write_text(text)
    return 1 if any(one.failed for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
