"""Measures every point of the recipes' knobs of a problem on `cpu`, and writes a recorded space.

    python benchmarks/exhaustive.py PROBLEM --state FOLDER [--out FILE.json.gz]

Every point is built as a candidate is, and points of one machine code are one kernel. Kernels are
timed in groups by a timer that has nothing of the referee (head_to_head.py): in each pass every
kernel is in one group, other ones each time, with a reference in all of them, in a process of its
own. The nearest to the best are timed in MORE passes, the nearest of those in FINAL ones.

The state's folder keeps what was done: a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from head_to_head import rank
from machine import machine
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import lsqr

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem, Structure
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.recorded import CACHE, RecordedSpace, write_space
from kernelwright.kernelbench.space import FAMILY, Space, space_of_recipes
from kernelwright.verifier.request import Task
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.programs import build_program
from kernelwright.verifier.stands.session import Session

GROUP = 24
"""Kernels beside the reference in one process."""
PASSES, MORE, FINAL = 2, 6, 24
NEAREST, FINALISTS = 0.1, 47
"""The share of the kernels that is timed in MORE passes, the fastest, and the number of those that
are timed in FINAL passes beyond them."""
ROUNDS = 12
REWEIGHTED, HUBER = 12, 1.5
"""How often observations are weighed anew, and from how many deviations on they count less."""


class State:
    """What was done, in a folder: libraries by their hash, and lines of JSON."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "libraries").mkdir(parents=True, exist_ok=True)

    def library(self, name: str) -> Path:
        """Where a kernel lies."""
        return self.folder / "libraries" / f"{name}.so"

    def read(self, table: str) -> Iterator[dict]:
        """The lines of a table that are whole."""
        path = self.folder / f"{table}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            if line.endswith("}"):
                yield json.loads(line)

    def add(self, table: str, line: dict) -> None:
        """One more."""
        with (self.folder / f"{table}.jsonl").open("a") as lines:
            lines.write(json.dumps(line) + "\n")


def build_all(state: State, problem: Problem, space: Space, session: Session) -> list[str]:
    """The hash of each point's kernel."""
    recipes = {recipe.family: recipe for recipe in recipes_for(problem.name)}
    done = {line["point"]: line["kernel"] for line in state.read("points")}

    def build(point: int) -> None:
        knobs = space.at(point)
        source = recipes[str(knobs.pop(FAMILY))].render(knobs)
        artefact = build_program(session, source, "cpp").built.artefact
        name = hashlib.sha256(artefact).hexdigest()[:24]
        state.library(name).write_bytes(artefact)
        done[point] = name
        state.add("points", {"point": point, "kernel": name})

    left = [point for point in range(len(space)) if point not in done]
    with ThreadPoolExecutor(len(session.workshop.cpus)) as pool:
        for number, _ in enumerate(pool.map(build, left)):
            if number % 100 == 0:
                print(f"built {len(done)} of {len(space)}", flush=True)
    return [done[point] for point in range(len(space))]


def time_pass(
    state: State, problem: Problem, structure: Structure, kernels: list[str], number: int
) -> None:
    """One pass over these kernels; groups that are there already are left out."""
    reference, others = kernels[0], kernels[1:]
    order = np.random.default_rng(number).permutation(len(others))
    done = {(line["pass"], line["group"]) for line in state.read("times")}
    groups = np.array_split(order, -(-len(order) // GROUP))
    for at, members in enumerate(groups):
        if (number, at) in done:
            continue
        names = [reference, *(others[member] for member in members)]
        libraries = [state.library(name) for name in names]
        logs = rank(problem, structure, libraries, processes=1, rounds=ROUNDS)[0]
        beside = dict(zip(names, (logs - logs[0]).round(5).tolist(), strict=True))
        state.add("times", {"pass": number, "group": at, "beside": beside})
        print(f"pass {number}: {at + 1} of {len(groups)}", flush=True)


def values_of(state: State) -> dict[str, float]:
    """ln(time / the reference's) of each kernel.

    What a group's process and minute are worth is told by all that were in it, not by the reference
    alone: least squares over kernels and groups at once, in which what lies far off counts less
    (Huber's weights). Medians of one and the other in turn (median polish) do not serve: to the
    fastest, most of whose groups are among themselves, their groups with all others look wrong.
    """
    lines = list(state.read("times"))
    names = list(dict.fromkeys(name for line in lines for name in line["beside"]))
    numbers = {name: at for at, name in enumerate(names)}
    kernel = np.array([numbers[name] for line in lines for name in line["beside"]])
    group = np.repeat(np.arange(len(lines)), [len(line["beside"]) for line in lines])
    told = np.array([value for line in lines for value in line["beside"].values()])
    rows = np.tile(np.arange(len(told)), 2)
    columns = np.concatenate([kernel, len(names) + group])
    design = csr_matrix((np.ones(len(rows)), (rows, columns)))
    weights = np.ones(len(told))
    for _ in range(REWEIGHTED):
        root = np.sqrt(weights)
        found = lsqr(diags(root) @ design, root * told, atol=1e-10, btol=1e-10)[0]
        rest = np.abs(told - design @ found)
        weights = 1.0 / np.maximum(1.0, rest / (HUBER * 1.4826 * np.median(rest)))
    values = found[: len(names)]
    reference = next(iter(lines[0]["beside"]))
    return dict(zip(names, (values - values[numbers[reference]]).tolist(), strict=True))


def main() -> None:
    """Builds, times and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    problem, state = registry.get(asked.problem), State(asked.state)
    task = Task(
        problem=problem.name,
        workload=problem.default_workload,
        cache_dir=str(asked.state / "cache"),
        baselines=("torch eager",),
    )
    stand = open_stand(task)
    try:
        space = space_of_recipes(recipes_for(problem.name), stand.facts)
        print(f"{problem.name}: {len(space)} points", flush=True)
        by_point = build_all(state, problem, space, stand.session)
        structure = stand.session.stage.target
    finally:
        stand.close()
    kernels = list(dict.fromkeys(by_point))
    print(f"{len(kernels)} kernels", flush=True)
    for number in range(PASSES):
        time_pass(state, problem, structure, kernels, number)
    values = values_of(state)
    nearest = sorted(kernels[1:], key=values.__getitem__)[: int(NEAREST * len(kernels))]
    for number in range(PASSES, PASSES + MORE):
        time_pass(state, problem, structure, [kernels[0], *nearest], number)
    values = values_of(state)
    finalists = sorted(nearest, key=values.__getitem__)[:FINALISTS]
    for number in range(PASSES + MORE, PASSES + MORE + FINAL):
        time_pass(state, problem, structure, [kernels[0], *finalists], number)
    values = values_of(state)
    workload = problem.default_workload.name
    recorded = RecordedSpace(
        f"{problem.name} {workload}",
        "cpu, " + ", ".join(machine().split(", ")[:2]),
        space,
        # In units of the reference's time: what is compared are ratios.
        tuple(1000.0 * float(np.exp(values[name])) for name in by_point),
        ("",) * len(space),
    )
    write_space(recorded, asked.out or state.folder / f"{problem.name}.json.gz", CACHE)


if __name__ == "__main__":
    main()
