"""Modelled time against measured: kernels of our recipes on a device, recorded once, compared here.

    python benchmarks/model.py record FILE.jsonl [--minutes 4] [--each 8] [--language cuda]
                                      [--counters full] [PROBLEM …]
    python benchmarks/model.py compare FILE.jsonl [--out docs/results/model.md] [--counts PAGE]

`record` needs an NVIDIA GPU: of each problem's recipes so many points are screened on the default
workload, and with --counters a call of each is profiled by Nsight Compute. Each line stands as soon
as it is known. `compare` needs none: it builds and emulates the same kernels for the same
architecture, and holds what the model says against the recorded times: with the emulation's counts,
and as it was said on the device, with none. With --counts it also writes the emulation's counts
beside the hardware's.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from contact import figures
from machine import machine
from scipy.stats import spearmanr

from kernelwright.errors import ExitCode, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipe import Knobs, Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.tests.gpu.attempt import JAIL, is_weak_accepted
from kernelwright.traces.records import MODELLED_US, Counting, Verdict
from kernelwright.verifier import evaluation
from kernelwright.verifier.profile import nsight
from kernelwright.verifier.profile.derive import MeasuredSample
from kernelwright.verifier.profile.fit import fit
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands import device_tools, emulated_looks
from kernelwright.verifier.stands.device import DeviceStand
from kernelwright.verifier.stands.emulated import EmulatedStand
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand

APART = 1.25
"""Measured times that differ by this factor are told apart; screenings vary by a few percent."""
SEED = 20
"""Of the points that are drawn beside each recipe's first."""
LANGUAGES = ("cuda", "triton")
Line = dict[str, Any]


def task(problem: str, language: str, target: str, cache: Path, workload: str = "") -> Task:
    """On a workload of the problem, its default one unless named, beside one baseline."""
    of = registry.get(problem)
    return Task(
        problem=problem,
        workload=of.workload(workload) if workload else of.default_workload,
        target=target,
        languages=(language,),
        cache_dir=str(cache),
        baselines=("torch eager",),
        jail=os.environ.get(JAIL) or "auto",
        accept_weak_isolation=is_weak_accepted(),
    )


def points(recipes: tuple[Recipe, ...], facts: Any, each: int) -> Iterator[tuple[Recipe, Knobs]]:
    """The first of each recipe, then drawn ones of all in turn, `each` together at most."""
    rng = np.random.default_rng(SEED)
    spaces = [list(recipe.space(facts)) for recipe in recipes]
    turns = [
        [recipe.first_knobs(), *(space[at] for at in rng.permutation(len(space))[:each])]
        for recipe, space in zip(recipes, spaces, strict=True)
    ]
    for number in range(each):
        turn = number % len(recipes)
        yield recipes[turn], turns[turn][min(number // len(recipes), len(turns[turn]) - 1)]


def count(stand: DeviceStand, source: str, language: str, which: str) -> Line:
    """What Nsight Compute counts in a call: a table for each launch, or why there is none."""
    ncu = nsight.find_ncu()
    if ncu is None:
        return {"not_counted": "Nsight Compute is not installed"}
    rng = np.random.default_rng(SEED)
    built = stand.build_all(language, source, [], rng).on_device
    asked = Counting(which=which)
    found = device_tools.count_with_ncu(stand.session, stand.leased, built, ncu, rng, asked)
    if isinstance(found, nsight.NotProfiled):
        return {"not_counted": found.reason}
    return {
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": launch.grid,
                "block": launch.block,
                "figures": {name: value.value for name, value in launch.figures.items()},
            }
            for launch in found
        ]
    }


def line(verdict: Verdict, recipe: Recipe, knobs: Knobs) -> Line:
    """What a screening came to."""
    found: Line = {
        "problem": recipe.problem,
        "workload": verdict.workload,
        "language": recipe.language,
        "family": recipe.family,
        "knobs": dict(knobs),
        "candidate": verdict.candidate,
        "status": str(verdict.status),
        "device": verdict.versions.get("device", ""),
        "driver": verdict.versions.get("driver", ""),
        "target": verdict.target,
    }
    if verdict.measurement:
        timed = verdict.measurement.candidate
        found |= {"us": timed.median_us, "low": timed.low_us, "high": timed.high_us}
    else:
        found["why"] = verdict.reasons
    if verdict.profile:
        found["static_us"] = verdict.profile.get(MODELLED_US)
    return found


def record(asked: argparse.Namespace) -> int:
    """Screens the points of each problem and language in turn, until the time is over."""
    present = Machine().devices()
    if not present:
        print("nothing is recorded: the driver shows no device", file=sys.stderr)
        return int(ExitCode.PREREQUISITE)
    ends = time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as folder, asked.file.open("a") as lines:
        Path(folder).chmod(0o755)
        for problem in asked.problems or registry.names():
            for language in [asked.language] if asked.language else LANGUAGES:
                if not recipes_for(problem, language) or time.monotonic() > ends:
                    continue
                of = task(problem, language, present[0].architecture, Path(folder))
                for found in screen_points(of, asked.each, asked.counters, ends):
                    lines.write(json.dumps(found) + "\n")
                    lines.flush()
    return 0


def screen_points(of: Task, each: int, counters: str | None, ends: float) -> Iterator[Line]:
    """Points of the recipes of a task in turn, on the device, until the time is over."""
    (language,) = of.languages
    recipes = recipes_for(of.problem, language)
    with closing(open_stand(of)) as stand:
        assert isinstance(stand, DeviceStand)
        stand.wait_prepared()
        for recipe, knobs in points(recipes, stand.facts, each):
            if time.monotonic() > ends:
                return
            source = recipe.render(knobs)
            verdict = evaluation.evaluate(stand, Order(source=source, language=language))
            found = line(verdict, recipe, knobs)
            if counters and verdict.status.is_pass:
                found |= count(stand, source, language, counters)
            yield found


def modelled(lines: list[Line], folder: Path) -> Iterator[Line]:
    """The lines that were timed, with what an emulation counts and the model then says."""
    first = lines[0]
    of = task(first["problem"], first["language"], first["target"], folder, first["workload"])
    recipes = {r.family: r for r in recipes_for(first["problem"], first["language"])}
    with closing(open_stand(of, Machine(allowed=()))) as stand:
        for each in lines:
            source = recipes[each["family"]].render(each["knobs"])
            order = Order(source=source, language=each["language"])
            verdict = evaluation.evaluate(stand, order)
            if verdict.candidate != each["candidate"]:
                print(f"{each['family']} {each['knobs']}: another kernel by now", file=sys.stderr)
                continue
            known = verdict.profile.metrics if verdict.profile else ()
            figures = {m.name: m.value for m in known}
            told = {"emulated": figures, "emulated_us": verdict.modelled_us}
            assert isinstance(stand, EmulatedStand)
            made = stand.tools.build(each["language"], source, SEED)
            static = emulated_looks.static_profile(stand.tools.ground, made)
            told["static_us"] = static.get(MODELLED_US)
            yield {**each, **told, "why": verdict.reasons}


def row(found: list[Line], name: str) -> str:
    """A line of the table: how the model's figures of this name stand to the measured ones."""
    known = [each for each in found if each.get(name)]
    head = f"| {found[0]['problem']} | {found[0]['language']} | {name.removesuffix('_us')} |"
    if len(known) < 3:
        return f"{head} {len(known)} | | | | |"
    said = np.array([each[name] for each in known])
    took = np.array([each["us"] for each in known])
    off = np.abs(np.log(said / took))
    regret = took[said.argmin()] / took.min() - 1
    return (
        f"{head} {len(known)} | {spearmanr(said, took).statistic:.2f} | "
        f"{math.exp(np.median(np.log(said / took))):.2f} | "
        f"{math.exp(np.quantile(off, 0.9)):.2f} | {regret:.0%} |"
    )


def tell_pairs(found: list[Line], name: str) -> str:
    """Of kernels of one problem whose measured times are clearly apart: how many the model has in
    their order."""
    right = total = 0
    for one, other in itertools.combinations(found, 2):
        is_same = (one["problem"], one["language"]) == (other["problem"], other["language"])
        if not is_same or not (one.get(name) and other.get(name)):
            continue
        if max(one["us"], other["us"]) >= APART * min(one["us"], other["us"]):
            total += 1
            right += (one["us"] > other["us"]) == (one[name] > other[name])
    return f"{name.removesuffix('_us')}: {right} of {total} ({right / max(total, 1):.0%})"


def tell_fit(found: list[Line]) -> list[str]:
    """What `metrics fit` makes of the record, and what that is worth on problems left out."""
    samples = [
        MeasuredSample(f"{one['problem']} {one['language']}", "", (), one["us"], one["emulated"])
        for one in found
    ]
    try:
        fitted = fit(samples)
    except UsageError as error:
        return [f"Not fitted: {error}."]
    scales = ", ".join(f"{term} x {scale:.2f}" for term, scale in sorted(fitted.scales.items()))
    told = {"as it is": fitted.before, "fitted": fitted.after, "left out": fitted.held_out}
    errors = "; ".join(
        f"{name}: bias {each.bias:.2f}, nine of ten within {each.nine_of_ten:.2f}"
        for name, each in told.items()
    )
    verdict = "better" if fitted.is_better else "no better, and `--write` would not keep it"
    return [
        f"Fitted as by `kernelwright metrics fit`, with the emulation's counts: {scales}. "
        f"{errors}. On problems that were left out the fit is {verdict}."
    ]


def page(rows: list[str], lines: list[Line], counters: int, found: list[Line]) -> str:
    """The whole page."""
    device = ", ".join(sorted({f"{each['device']} (driver {each['driver']})" for each in lines}))
    return "\n".join(
        [
            "# Modelled time against measured",
            "",
            f"Made by `python benchmarks/model.py compare` on {datetime.date.today().isoformat()}: "
            f"{machine()}. Measured: {len(lines)} kernels of our recipes, screened on {device} by "
            "`python benchmarks/model.py record`, each on its problem's default workload; of "
            f"{counters} of them Nsight Compute's counters are in the record.",
            "",
            "*Static*: from the machine code and one trip count for all loops. *Emulated*: with "
            "the counts of an emulation on the CPU. Rank: Spearman's correlation with the measured "
            "times. Bias: the median of modelled / measured. Nine of ten are within this factor. "
            "Pick: how much slower than the fastest measured one is the kernel that the model "
            "calls fastest.",
            "",
            "| problem | language | model | kernels | rank | bias | nine of ten within | pick |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"Pairs of one problem whose measured times differ by {APART - 1:.0%} or more, in "
            f"their order by the model: {tell_pairs(found, 'static_us')}, "
            f"{tell_pairs(found, 'emulated_us')}.",
            "",
            *tell_fit(found),
            "",
        ]
    )


def compare(asked: argparse.Namespace) -> int:
    """Holds the model against a record."""
    lines = [json.loads(each) for each in asked.file.read_text("utf-8").splitlines()]
    timed = [each for each in lines if each.get("us")]
    rows: list[str] = []
    emulated: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for _, group in groupby(timed, lambda each: (each["problem"], each["language"])):
            found = list(modelled(list(group), Path(folder)))
            emulated += found
            rows += [row(found, name) for name in ("static_us", "emulated_us") if found]
            print("\n".join(rows[-2:]), file=sys.stderr, flush=True)
    counters = sum("launches" in each for each in lines)
    asked.out.write_text(page(rows, timed, counters, emulated))
    if asked.counts:
        asked.counts.write_text(counts_page(emulated, str(asked.file)))
    return 0


def counts_page(emulated: list[Line], record_name: str) -> str:
    """What was emulated beside what was counted, as first contact writes it."""
    known = {str(number): {"emulated": True, "found": line} for number, line in enumerate(emulated)}
    (device,) = {f"{line['device']} (driver {line['driver']})" for line in emulated}
    head = [
        "# Emulated counts against the hardware's",
        "",
        f"Made by `python benchmarks/model.py compare {record_name} --counts …` on "
        f"{datetime.date.today().isoformat()}: {machine()}. The hardware's counts are Nsight "
        f"Compute's on {device}, of the record; the same kernels were emulated now.",
        "",
    ]
    return "\n".join([*head, *figures.emulation(known)]).rstrip() + "\n"


def main() -> int:
    """Records, or compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(required=True)
    recording = ways.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("problems", nargs="*", metavar="PROBLEM")
    recording.add_argument("--minutes", type=float, default=4.0)
    recording.add_argument("--each", type=int, default=8)
    recording.add_argument("--language", choices=LANGUAGES)
    recording.add_argument("--counters", choices=("quick", "cudaforge", "full"))
    recording.set_defaults(does=record)
    comparing = ways.add_parser("compare")
    comparing.add_argument("file", type=Path)
    comparing.add_argument("--out", type=Path, default=Path("docs/results/model.md"))
    comparing.add_argument("--counts", type=Path, help="a page of counts, emulated and counted")
    comparing.set_defaults(does=compare)
    asked = parser.parse_args()
    return int(asked.does(asked))


if __name__ == "__main__":
    sys.exit(main())
