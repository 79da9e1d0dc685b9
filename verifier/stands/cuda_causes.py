# SPDX-License-Identifier: Apache-2.0
"""Why a candidate failed: its failing call once more, in the builds that look closer.

Whatever failed (a trial, a metamorphic one, a fence, another schedule), one call of it is kept as
Failing. `explain` plays it in the sanitized and in the access build, side by side, and gives the
sentence that is nearest to the cause: line, memory, threads. What it says is advice: it changes no
status, and a candidate that treats these builds apart is told less. Triton has no such builds; its
interpreter says where it stands as it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ...errors import PrerequisiteError
from ...kernelbench.dtypes import DTYPES
from ...kernelbench.problem import Problem
from ...sandbox.builders.cuda_source import shared_names
from ...sandbox.builders.model import EmulatedVariant
from ...sandbox.isolation.model import Limits
from ...sandbox.run import memory_access
from ...sandbox.run.ledger import Race
from ...sandbox.run.once import CallInputs
from ...sandbox.run.process import RunFault
from ..clock.timed_sides import CandidateSide
from ..failure import Failed
from ..truth import gates
from ..truth.trials import Item, Stage, make_item, small_trials
from . import refused_source, sanitize
from .cuda_candidate import CudaCandidate
from .gpu_candidates import DeviceCandidate
from .session import Session

SMALL_BYTES = 32 << 10
"""A failing call on so little is not made smaller: its closer looks take a tenth of a second."""
LEAST_BYTES = 2 << 10
"""On less, threads seldom meet: what is wrong may be hidden there."""
TIMEOUT_S = 15.0
"""Of a closer look."""
_LIMITS = Limits(wall_s=60.0, cpu_s=120.0, memory_bytes=4 << 30)
_HAS_LINE = re.compile(r"\bline \d+")
_UNSET = re.compile(
    r"^candidate\.cu:(\d+):\d+: warning: ['‘](\w+)[^'’]*['’] (is|may be) used uninitialized", re.M
)
_FILLED = -1.6e38
"""What g++ fills variables with is below it; shared memory, and a missing lane's value, is NaN."""
_Found = TypeVar("_Found")


@dataclass
class Failing:
    """The call that failed, as far as one did."""

    item: Item | None = None
    schedule: str = "order"
    whole: Item | None = None
    """What failed first, where `item` is a smaller call that fails too."""

    def note(self, side: CandidateSide, schedule: str) -> None:
        """Keeps the call that the side was given last."""
        self.item, self.schedule = side.asked or self.item, schedule

    def shrink(self, side: CandidateSide, stage: Stage, rng: np.random.Generator) -> None:
        """Puts a smaller trial in its place where one of a few fails too. Raises RunFault."""
        item = self.item
        if item is None or _bytes(item) <= SMALL_BYTES:
            return
        trials = sorted(
            small_trials(stage, rng), key=lambda t: stage.problem.bytes_moved(t.structure.axes)
        )
        for trial in trials:
            smaller = make_item(stage.problem, trial.structure, item.family, rng)
            if _bytes(smaller) >= _bytes(item):
                return
            if _bytes(smaller) < LEAST_BYTES:
                continue
            slot = side.place(trial.structure, 1)[0]
            if gates.first_failure(side.answer(smaller, slot)):
                self.item, self.whole = smaller, item
                return


def explain(
    session: Session,
    made: DeviceCandidate | None,
    failing: Failing,
    reason: str,
    rng: np.random.Generator,
) -> str:
    """The sentence to lead the reason with; empty where nothing is known beyond it."""
    if not isinstance(made, CudaCandidate) or failing.item is None or _HAS_LINE.search(reason):
        return ""
    without_line = ""
    for item in (failing.item, failing.whole):
        if item is not None and (found := _look_closer(session, made, item, failing.schedule, rng)):
            if _HAS_LINE.search(found):
                return found
            # As where the sizes are so small that no thread writes anything.
            without_line = without_line or found
    return without_line


def _look_closer(
    session: Session, made: CudaCandidate, item: Item, schedule: str, rng: np.random.Generator
) -> str:
    look = _Look(session, made, item, schedule, rng)
    with ThreadPoolExecutor(2) as pool:
        sanitized = pool.submit(_try_work, look.run_sanitized)
        watched = pool.submit(_try_work, look.run_watched)
        return _word_cause(made.source, item, sanitized.result() or "", watched.result())


def _try_work(work: Callable[[], _Found]) -> _Found | None:
    """What fails here fails for the candidate's own reasons, or the machine lacks a tool."""
    try:
        return work()
    except (RunFault, Failed, PrerequisiteError):
        return None


@dataclass(frozen=True)
class _Seen:
    """What the access build showed; without a report where the call did not end."""

    log: str
    report: memory_access.AccessReport | None


@dataclass(frozen=True)
class _Look:
    session: Session
    made: CudaCandidate
    item: Item
    schedule: str
    rng: np.random.Generator

    def run_sanitized(self) -> str:
        if refused_source.explain_apart(self.made.source):
            return ""
        program = self.made.variant(EmulatedVariant.ASAN, self.schedule)
        return sanitize.sentence_on(
            self.session, program, self.item, self.rng, self.made.extra, timeout_s=TIMEOUT_S
        )

    def run_watched(self) -> _Seen:
        built = self.made.build_variant(EmulatedVariant.ACCESS)
        structure = self.item.structure
        call = CallInputs(
            self.session.problem,
            structure.axes,
            {**structure.arrays, **self.item.inputs},
            self.made.resolve_launches(structure),
        )
        report = _try_work(
            lambda: memory_access.examine(
                self.session.workshop,
                built,
                call,
                limits=_LIMITS,
                timeout_s=TIMEOUT_S,
                schedule=self.schedule,
                writers=True,
            )
        )
        return _Seen(built.log, report)


def _word_cause(source: str, item: Item, sanitized: str, seen: _Seen | None) -> str:
    """The nearest cause; where that is a guess, with who wrote the wrong element."""
    if _HAS_LINE.search(sanitized):
        return _name_shared(source, sanitized)
    unset = {found[3]: found for found in _UNSET.finditer(seen.log if seen else "")}
    report = seen.report if seen else None
    certain = [race_sentence(source, race) for race in report.races] if report else []
    certain += [_word_unset(unset[word]) for word in ("is",) if word in unset]
    if certain:
        return certain[0]
    guesses = list(_guesses(source, report)) if report else []
    guesses += [_word_unset(unset[word]) for word in ("may be",) if word in unset]
    wrong = _first_wrong(item, report) if report else None
    if report is None or wrong is None:
        return guesses[0] if guesses else sanitized
    written = _word_writer(item.structure.axes, item.problem, report, wrong)
    told = [*guesses[:1], written] if wrong.is_unset else [written, *guesses[:1]]
    return "; ".join(told)


def race_sentence(source: str, race: Race) -> str:
    """The race, with the name of the shared memory where the source shows it."""
    name = "" if race.buffer else _shared_on(source, race.lines)
    return race.word_race(f"shared memory `{name}`") if name else race.sentence


def _guesses(source: str, report: memory_access.AccessReport) -> Iterator[str]:
    """What is wrong in most kernels, and harmless in some."""
    for line in sorted(report.unwritten):
        name = _shared_on(source, (line,))
        yield (
            f"line {line} reads shared memory{f' `{name}`' if name else ''} that no thread of its "
            "block has written"
        )
    yield from (one.sentence for one in report.unset)
    yield from (one.sentence for one in report.missing)
    yield from (race.sentence for race in report.weak_races)


def _word_unset(found: re.Match[str]) -> str:
    return f"the variable `{found[2]}` {found[3]} used uninitialised at line {found[1]}"


@dataclass(frozen=True)
class _Wrong:
    """The first wrong element."""

    name: str
    index: tuple[int, ...]
    got: float
    want: float
    count: int
    total: int

    @property
    def is_unset(self) -> bool:
        """Whether it looks like what memory and variables hold that nobody set."""
        return bool(np.isnan(self.got) and not np.isnan(self.want)) or self.got <= _FILLED


def _first_wrong(item: Item, report: memory_access.AccessReport) -> _Wrong | None:
    """As the gates judge elements; where only all together are wrong, the worst one."""
    for name, expected in item.expected.items():
        got, want = report.outputs[name], np.asarray(expected.value)
        precision, dtype = item.problem.precision_of(name), DTYPES[got.dtype.name]
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - want)
            is_exact = expected.is_held_exact(item.family, dtype)
            limit = 0.0 if is_exact else gates.allowed_error(expected, precision)
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            wrong = ~(same | (error <= limit))
        if wrong.any():
            index = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
            return _Wrong(
                name, index, float(got[index]), float(want[index]), int(wrong.sum()), wrong.size
            )
    return None


def _word_writer(
    axes: dict[str, int], problem: Problem, report: memory_access.AccessReport, wrong: _Wrong
) -> str:
    """Which thread wrote the first wrong element last, or that none did."""
    assert report.writers is not None
    tensor = next(t for t in problem.outputs if t.name == wrong.name)
    shape = tensor.extent(axes)
    place = f"{wrong.name}[{', '.join(map(str, wrong.index))}]"
    word = int(np.ravel_multi_index(wrong.index, shape)) if shape else 0
    writer = report.writers.find_writer(wrong.name, word)
    if writer is not None:
        return (
            f"line {writer.line} wrote {place} = {wrong.got:.6g} where {wrong.want:.6g} is right, "
            f"by thread {writer.thread} of block {writer.block} of `{writer.kernel}`, the first of "
            f"{wrong.count} wrong elements of {wrong.total}"
        )
    near = report.writers.find_nearest(wrong.name, word)
    if near is None:
        return f"no thread wrote any element of {wrong.name}"
    nearest = report.writers.find_writer(wrong.name, near)
    index = ", ".join(str(int(i)) for i in np.unravel_index(near, shape))
    assert nearest is not None
    return (
        f"no thread wrote {place}; the nearest element that one wrote is {wrong.name}[{index}], "
        f"at line {nearest.line} by thread {nearest.thread} of block {nearest.block} of "
        f"`{nearest.kernel}`"
    )


def _name_shared(source: str, sentence: str) -> str:
    """A sanitizer's sentence, with the shared memory that its line accesses."""
    found = _HAS_LINE.search(sentence)
    name = _shared_on(source, (int(found[0].split()[1]),)) if found else ""
    is_shared = "a block of" in sentence or "out of bounds" in sentence
    return f"{sentence} (shared memory `{name}`)" if name and is_shared else sentence


def _shared_on(source: str, lines: tuple[int, ...]) -> str:
    """The one shared variable that all these lines name; empty where there is none, or several."""
    text = source.splitlines()
    names = shared_names(source)
    for line in lines:
        here = text[line - 1] if 0 < line <= len(text) else ""
        names = {name for name in names if re.search(rf"\b{name}\b", here)}
    return names.pop() if len(names) == 1 else ""


def _bytes(item: Item) -> float:
    return item.problem.bytes_moved(item.structure.axes)
