"""The table of pairs, and what the model says of a kernel of it on a device that is not here."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import get
from kernelwright.traces.records import Depth, Profile
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands import emulated_looks
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate
from kernelwright.verifier.stands.emulated import EmulatedStand
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.verdict_draft import Draft

HERE = Path(__file__).parent
RECORD = HERE.parents[2] / "benchmarks" / "records" / "h200-2026-11-27.jsonl"
TARGET = "sm_90"
MARGIN = 1.1
"""The model tells two kernels apart from this ratio on: recipes that a device takes equally long
for (13.4 to 14.1 us) lie within it."""


@dataclass(frozen=True)
class Kernel:
    """One side of a pair."""

    problem: str
    language: str
    told: Mapping[str, Any]

    @property
    def knobs(self) -> dict[str, Any]:
        """All of them, where it is a recipe's."""
        recipe = get(self.told.get("recipe", self.problem), self.told["family"], self.language)
        return {**recipe.first_knobs(), **self.told.get("knobs", {})}

    @property
    def source(self) -> str:
        """Its text."""
        if "file" in self.told:
            return (HERE / self.told["file"]).read_text("utf-8")
        recipe = get(self.told.get("recipe", self.problem), self.told["family"], self.language)
        text = recipe.render(self.knobs)
        for before, after in self.told.get("changes", ()):
            assert before in text, (self.told, before)
            text = text.replace(before, after)
        return text

    @property
    def measured_us(self) -> float | None:
        """What it took on the recorded device; None: it is not in the record."""
        if "file" in self.told or "changes" in self.told:
            return None
        found = [
            each["us"]
            for each in read_record()
            if (each["problem"], each["family"]) == (self.problem, self.told["family"])
            and each["language"] == self.language
            and each["knobs"] == self.knobs
        ]
        return found[0] if found else None


@dataclass(frozen=True)
class Pair:
    """Two kernels for one workload whose order is known."""

    name: str
    slow: Kernel
    fast: Kernel
    source: str
    """Who says so."""
    missed: str = ""
    """Why the model does not tell them apart; empty: it does."""


@cache
def read_record() -> list[dict[str, Any]]:
    """The kernels that were timed on a device."""
    lines = RECORD.read_text("utf-8").splitlines()
    return [each for each in map(json.loads, lines) if each.get("us")]


def read_pairs() -> list[Pair]:
    """The table."""
    found = tomllib.loads((HERE / "pairs.toml").read_text("utf-8"))["pair"]
    return [
        Pair(
            each["name"],
            Kernel(each["problem"], each["language"], each["slow"]),
            Kernel(each["problem"], each["language"], each["fast"]),
            each["source"],
            each.get("missed", ""),
        )
        for each in found
    ]


@contextmanager
def open_emulated(problem: str, language: str, folder: Path) -> Iterator[EmulatedStand]:
    """The stand for the problem's default workload. Raises PrerequisiteError."""
    task = Task(
        problem=problem,
        workload=registry.get(problem).default_workload,
        target=TARGET,
        languages=(language,),
        cache_dir=str(folder),
    )
    stand = open_stand(task, Machine(allowed=()))
    assert isinstance(stand, EmulatedStand)
    try:
        yield stand
    finally:
        stand.close()


def profile(stand: EmulatedStand, kernel: Kernel) -> Profile:
    """What the model says of it: with counts, where an emulation gives some."""
    order = Order(source=kernel.source, language=kernel.language, protocol=Depth.SCREEN)
    draft = Draft(order, stand.session, b"x")
    made = stand.tools.build(kernel.language, kernel.source, 1)
    if not isinstance(made, CudaCandidate):
        return emulated_looks.static_profile(stand.tools.ground, made)
    rng = np.random.default_rng(1)
    report = emulated_looks.look_for_races(draft, made, rng)
    assert draft.is_right, draft.checks
    return emulated_looks.profile_emulated(draft, made, report, rng)
