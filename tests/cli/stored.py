"""A store with one campaign in it, written as a campaign would: for commands that only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.kernelbench.problem import Problem, Workload
from kernelwright.traces.events import (
    AdviceGiven,
    CampaignFinished,
    CampaignStarted,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Payload,
)
from kernelwright.traces.records import (
    MODELLED_US,
    Advice,
    Check,
    Depth,
    Level,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)
from kernelwright.traces.store import Store

SOURCES = ("int first;\n", "int second;\n", "int third;\n")
IDS = tuple(candidate_id(source) for source in SOURCES)


def measurement() -> Measurement:
    """Twice as fast as eager, and slower than scipy."""
    return Measurement(
        workload="tiny",
        candidate=Timing(median_us=50.0, low_us=49.0, high_us=52.0),
        baselines={
            "torch eager": Timing(median_us=100.0, low_us=98.0, high_us=103.0),
            "scipy": Timing(median_us=40.0, low_us=39.0, high_us=41.0),
        },
        speedup={
            "torch eager": Speedup(median=2.0, low=1.9, high=2.1),
            "scipy": Speedup(median=0.8, low=0.75, high=0.85),
        },
        best_baseline="scipy",
        missing={"torch.compile": "no C++ compiler was found"},
        pairs=60,
        mde=0.02,
        roofline=0.25,
    )


def verdict(number: int, status: Status, protocol: Depth) -> Verdict:
    """A verdict on the candidate `number`, consistent with its status."""
    good = status.is_pass
    checks = tuple(
        Check(name=f"correct on shape {i}", passed=True, figure=i / 10, limit=1.0) for i in range(3)
    )
    if not good:
        checks += (Check(name="guard bands", passed=False, detail="C[7] was written outside"),)
    return Verdict(
        candidate=IDS[number - 1],
        problem="spmm_csr",
        workload="tiny",
        language="cpp",
        target="cpu",
        protocol=protocol,
        status=status,
        checks=checks,
        reasons=() if good else ("guard bands: C[7] was written outside",),
        measurements=(measurement(),) if good else (),
    )


def proposed(number: int, family: str) -> CandidateProposed:
    return CandidateProposed(
        candidate=IDS[number - 1],
        number=number,
        language="cpp",
        family=family,
        knobs={"tile": 8 * number},
        operator="initial",
        note="a first try",
    )


def judged(number: int, status: Status, protocol: Depth) -> list[Payload]:
    found = verdict(number, status, protocol)
    return [
        EvaluationStarted(candidate=found.candidate, protocol=str(protocol)),
        EvaluationFinished(verdict=found),
    ]


def started() -> CampaignStarted:
    return CampaignStarted(
        problem="spmm_csr",
        workload="tiny",
        target="cpu",
        language="cpp",
        tier="native",
        workflow="evolve",
        model="recipe",
        judge_model="rules",
        seed=3,
        limits={"evaluations": 3.0, "seconds": 60.0},
    )


def fill(home: Path, *, has_winner: bool = True, begun: CampaignStarted | None = None) -> str:
    """Writes the campaign and gives its id."""
    with Store.open(home) as store:
        for source in SOURCES:
            store.put_blob(source)
        campaign = store.create(begun or started())
        events: list[Payload] = [
            proposed(1, "row-balanced"),
            *judged(1, Status.INCORRECT, Depth.SCREEN),
            proposed(2, "nnz-balanced"),
            *judged(2, Status.SCREENED, Depth.SCREEN),
        ]
        if has_winner:
            events += judged(2, Status.VERIFIED, Depth.CONFIRM)
            events += [
                ChampionChanged(candidate=IDS[1], credited=0.75),
                AdviceGiven(
                    advice=Advice(candidate=IDS[1], bottleneck="imbalance", change="Cut rows.")
                ),
            ]
        events += [
            proposed(3, "row-balanced"),
            EvaluationStarted(candidate=IDS[2], protocol="screen"),
            CampaignFinished(stopped_by="seconds", best=IDS[1] if has_winner else None),
        ]
        for event in events:
            store.append(campaign, event)
        return campaign


def fill_verified(home: Path, problem: Problem, source: str, workload: Workload) -> str:
    """A campaign whose one candidate, in C++, is its verified champion."""
    chosen = candidate_id(source)
    changed = {"candidate": chosen, "problem": problem.name}
    found = verdict(1, Status.VERIFIED, Depth.FULL).model_copy(update=changed)
    tensors = {
        role: [
            {"name": t.name, "dtype": t.dtype, "shape": t.shape, "is_index": t.is_index}
            for t in getattr(problem, role)
        ]
        for role in ("inputs", "outputs")
    }
    told = {"title": problem.title, "definition": problem.definition, "entry": problem.name}
    config = {"problem": {**told, "axes": dict(problem.axes), **tensors}}
    begun = {"problem": problem.name, "workload_spec": workload.model_dump(mode="json")}
    with Store.open(home) as store:
        store.put_blob(source)
        campaign = store.create(started().model_copy(update={**begun, "config": config}))
        for event in (
            proposed(1, "hand").model_copy(update={"candidate": chosen}),
            EvaluationStarted(candidate=chosen, protocol="full"),
            EvaluationFinished(verdict=found),
            ChampionChanged(candidate=chosen, credited=1.5),
            CampaignFinished(stopped_by="evaluations", best=chosen),
        ):
            store.append(campaign, event)
        return campaign


def emulated(source: str, language: str, status: Status, modelled_us: float) -> Verdict:
    """A verdict on a softmax candidate that was only emulated."""
    is_right = status.is_pass
    return Verdict(
        candidate=candidate_id(source),
        problem="softmax",
        workload="tiny",
        language=language,
        target="sm_90",
        tier="device-only",
        protocol=Depth.SCREEN,
        status=status,
        emulated=True,
        reasons=() if is_right else ("error at line 1:1: there is no launch plan",),
        profile=Profile(
            metrics=(Metric(name=MODELLED_US, value=modelled_us, unit="us", level=Level.MODELLED),)
        )
        if is_right
        else None,
    )


def fill_emulated(
    home: Path, language: str, sources: Sequence[str], *, config: Mapping[str, Any] | None = None
) -> str:
    """A campaign of softmax on an emulated sm_90: each source takes longer, the last is wrong."""
    workload = {"name": "tiny", "kind": "tiny", "axes": {"M": 64, "N": 200}}
    begun = started().model_copy(
        update={
            "problem": "softmax",
            "target": "sm_90",
            "language": language,
            "tier": "device-only",
            "workload_spec": workload,
            "config": SOFTMAX if config is None else dict(config),
        }
    )
    with Store.open(home) as store:
        campaign = store.create(begun)
        for number, source in enumerate(sources, 1):
            candidate = store.put_blob(source)
            status = Status.BUILD_FAILED if number == len(sources) > 1 else Status.SCREENED
            for event in (
                CandidateProposed(
                    candidate=candidate,
                    number=number,
                    language=language,
                    family="rows",
                    operator="initial",
                ),
                EvaluationStarted(candidate=candidate, protocol="screen"),
                EvaluationFinished(verdict=emulated(source, language, status, 12.5 * number)),
            ):
                store.append(campaign, event)
        store.append(campaign, CampaignFinished(stopped_by="evaluations", best=None))
    return campaign


SOFTMAX: dict[str, Any] = {
    "problem": {
        "title": "Softmax over rows",
        "definition": "y = exp(x - max) / sum",
        "entry": "softmax",
        "axes": {"M": "rows", "N": "elements of a row"},
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["M", "N"]}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": ["M", "N"]}],
    }
}
"""What a campaign's first event says of its problem."""
