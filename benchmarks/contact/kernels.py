"""The parts that time kernels: recipes against baselines, a kernel beside its copy, the model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from typing import Any

import gpu_results
import model

from kernelwright.errors import KernelwrightError
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.run.device import nvml
from kernelwright.traces.records import CHAMPION, Depth, Verdict
from kernelwright.verifier import evaluation
from kernelwright.verifier.clock import statistics
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands.opening import open_stand

from . import doubts
from .records import Record
from .work import DEVICE, Work

RECORDING = 0.6
"""Of a part's time, that it may be on the device; the rest is for emulating the same kernels."""
COUNTERS = "full"
COPY = "\n// a copy\n"
FOUND = "found"


def collect_recipes(work: Work) -> None:
    """A campaign for each problem and language, as long as there is time for one more."""
    if not _can_measure(work):
        return
    for problem, language in _each(work):
        unit = f"{problem} {language}"
        needed_s = work.sizes.seconds + gpu_results.BESIDE_S
        if work.is_kept(unit) or not work.has_time(unit, needed_s):
            continue
        document = gpu_results.campaign(
            problem,
            language,
            work.scene.target,
            work.sizes.seconds,
            str(work.records.folder / "home"),
            work.sizes.workload,
        )
        told = {"language": language, "document": _shorten(document)}
        print(unit, document.get("by_status") or document.get("failed"), flush=True)
        if "failed" in document:
            said = "\n".join(document["said"])
            work.fail(unit, said, document["exit_status"], **told)
        else:
            work.keep(unit, **told)


def collect_fairness(work: Work) -> None:
    """Confirmations of each problem's first recipe beside its copy: none should be credited."""
    if not _can_measure(work):
        return
    for problem, language in _each(work):
        units = [f"{problem} {language} {number}" for number in range(work.sizes.runs)]
        units = [unit for unit in units if not work.is_kept(unit)]
        if not units or not all(work.has_time(unit) for unit in units):
            continue
        source = _first(problem, language)
        order = Order(
            source=source, language=language, protocol=Depth.CONFIRM, champion=source + COPY
        )
        try:
            of = model.task(problem, language, work.scene.target, work.folder, work.sizes.workload)
            with closing(open_stand(of)) as stand:
                stand.wait_prepared()
                for unit in units:
                    if work.has_time(unit):
                        _pair(work, unit, evaluation.evaluate(stand, order))
        except KernelwrightError as error:
            work.fail(units[0], f"{error}\n{error.hint}", problem=problem, language=language)


def _pair(work: Work, unit: str, verdict: Verdict) -> None:
    """What a kernel was credited beside its copy."""
    problem, language, _ = unit.split()
    told: Record = {"problem": problem, "language": language, "status": str(verdict.status)}
    measured = verdict.measurement
    gain = measured.speedup.get(CHAMPION) if measured else None
    print(unit, verdict.status, gain, flush=True)
    if measured is None or gain is None:
        work.fail(unit, "\n".join(verdict.reasons), **told)
        return
    figures = {"median": gain.median, "low": gain.low, "high": gain.high, "noise": measured.mde}
    work.keep(
        unit,
        workload=verdict.workload,
        **told,
        **figures,
        us=measured.candidate.median_us,
        is_credited=statistics.displaces(gain, measured.mde),
    )


def collect_emulation(work: Work) -> None:
    """Kernels with their counters, then what an emulation counts of the same ones."""
    if _can_measure(work):
        _measure(work, work.sizes.counted, COUNTERS)
        _emulate(work)


def collect_model(work: Work) -> None:
    """Kernels with their times, then what the model says of the same ones."""
    if _can_measure(work):
        _measure(work, work.sizes.each, None)
        _emulate(work)


def _measure(work: Work, each: int, counters: str | None) -> None:
    """Screens points of recipes on the device, problem by problem."""
    ends = time.monotonic() + RECORDING * work.left_s
    for problem, language in _each(work):
        closed = f"measured {problem} {language}"
        if work.is_kept(closed):
            continue
        if time.monotonic() > ends:
            work.left_out.append(closed)
            continue
        of = model.task(problem, language, work.scene.target, work.folder, work.sizes.workload)
        try:
            for line in model.screen_points(of, each, counters, ends):
                unit = f"on the device {line['candidate']}"
                print(problem, language, line["family"], line["status"], flush=True)
                _keep_line(work, unit, line)
        except KernelwrightError as error:
            work.fail(closed, f"{error}\n{error.hint}")
        else:
            # What the time cut short is measured anew by a run that goes on.
            if time.monotonic() > ends:
                work.left_out.append(closed)
            else:
                work.keep(closed)


def _keep_line(work: Work, unit: str, line: Record) -> None:
    """A kernel that was not timed, or not counted although it was asked for, is a failure."""
    reasons = line["why"] if "us" not in line else [line.get("not_counted", "")]
    if said := "\n".join(filter(None, reasons)):
        work.fail(unit, said, **{FOUND: line})
    else:
        work.keep(unit, **{FOUND: line})


def _emulate(work: Work) -> None:
    """What was timed, on the CPU: as far as the time goes."""
    records = work.records.of(work.part).values()
    lines = [record[FOUND] for record in records if FOUND in record and "emulated" not in record]
    timed = [
        line
        for line in lines
        if line.get("us") and not work.is_kept(f"emulated {line['candidate']}")
    ]
    for of, group in groupby(timed, lambda line: (line["problem"], line["language"])):
        if not work.has_time(f"emulated {' '.join(of)}"):
            continue
        try:
            for line in model.modelled(list(group), work.folder):
                unit = f"emulated {line['candidate']}"
                kept: Record = {FOUND: line, "emulated": True}
                print(unit, line["emulated_us"], flush=True)
                if line["emulated_us"] is None:
                    work.fail(unit, "\n".join(line["why"]), **kept)
                else:
                    work.keep(unit, **kept)
        except KernelwrightError as error:
            work.fail("emulation", f"{error}\n{error.hint}")


def _can_measure(work: Work) -> bool:
    """A device that is divided, or one process's alone, would be emulated without a word."""
    with nvml.open_nvml() as module:
        why = doubts.why_unusable(nvml.devices(module)[0])
    if why:
        work.fail(DEVICE, why)
    return not why


def _each(work: Work) -> Iterator[tuple[str, str]]:
    """Problems and languages that there are recipes of: all problems in one language first."""
    for language in work.sizes.languages:
        for problem in work.sizes.problems:
            if recipes_for(problem, language):
                yield problem, language


def _first(problem: str, language: str) -> str:
    recipe = recipes_for(problem, language)[0]
    return recipe.render(recipe.first_knobs())


def _shorten(document: dict[str, Any]) -> Record:
    """Of a campaign's document, what a page or a later test reads."""
    names = (
        "problem",
        "workload",
        "target",
        "language",
        "best",
        "evaluated",
        "by_status",
        "why_no_winner",
        "preparation",
        "pace",
        "wall_s",
        "stopped_by",
        "failed",
    )
    return {name: document[name] for name in names if name in document}
