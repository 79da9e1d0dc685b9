"""A bundle is made from a campaign's events alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pytest

from kernelwright.errors import StorageError, UnknownNameError, UsageError
from kernelwright.tests.traces.export import kernels
from kernelwright.traces.events import (
    CampaignStarted,
    CandidateProposed,
    EvaluationFinished,
    Event,
    Payload,
)
from kernelwright.traces.export import Ancestor, TensorSpec, bundle_from_store
from kernelwright.traces.records import Depth, Status, Verdict

OLD, NEW = kernels.SOFTMAX + "// 1\n", kernels.SOFTMAX
CAMPAIGN = "c-1"


@dataclass
class Memory:
    """A store that reads from memory: the two questions an export asks."""

    payloads: list[Payload]

    def events(self, campaign: str) -> list[Event]:
        assert campaign == CAMPAIGN
        return [
            Event(seq=i, campaign=campaign, at=1000.0 + i, payload=payload)
            for i, payload in enumerate(self.payloads)
        ]

    def get_blob(self, sha: str) -> bytes:
        return {kernels.candidate_id(text): text.encode() for text in (OLD, NEW)}[sha]


def described_tensor(tensor: TensorSpec) -> dict[str, Any]:
    return asdict(tensor) | {"shape": list(tensor.shape)}


def started(**problem: Any) -> CampaignStarted:
    bundle = kernels.softmax()
    described: dict[str, Any] = {
        "title": bundle.title,
        "definition": bundle.definition,
        "axes": dict(bundle.axes),
        "inputs": [described_tensor(tensor) for tensor in bundle.inputs],
        "outputs": [described_tensor(tensor) for tensor in bundle.outputs],
        "entry": bundle.entry,
        "source": "a key that exports do not read",
    }
    return CampaignStarted(
        problem="softmax",
        workload="realistic",
        target="cpu",
        language="cpp",
        tier="native",
        workflow="evolve",
        model="recipe",
        judge_model="rule",
        seed=1,
        limits={},
        machine={"cpu": "Example CPU 9000"},
        config={"problem": described | problem},
    )


def proposed(source: str, number: int, *parents: str) -> CandidateProposed:
    return CandidateProposed(
        candidate=kernels.candidate_id(source),
        number=number,
        language="cpp",
        family="plain",
        operator="mutate" if parents else "initial",
        parents=tuple(map(kernels.candidate_id, parents)),
    )


def judged(protocol: Depth, status: Status, source: str = NEW) -> EvaluationFinished:
    verdict: Verdict = kernels.verdict(source, "softmax", status, protocol=protocol, checks=())
    return EvaluationFinished(verdict=verdict)


def bundle_of(*verdicts: EvaluationFinished, first: CampaignStarted | None = None) -> Any:
    store = Memory([first or started(), proposed(OLD, 1), proposed(NEW, 2, OLD), *verdicts])
    cases = kernels.softmax().cases
    return bundle_from_store(store, CAMPAIGN, kernels.candidate_id(NEW), cases=cases)


def test_everything_comes_from_the_events() -> None:
    bundle = bundle_of(judged(Depth.FULL, Status.VERIFIED))
    made = kernels.softmax()
    for name in (
        "problem",
        "title",
        "definition",
        "axes",
        "inputs",
        "outputs",
        "entry",
        "source",
        "candidate",
        "language",
    ):
        assert getattr(bundle, name) == getattr(made, name), name
    assert [case.name for case in bundle.cases] == ["small"]
    assert bundle.lineage == (
        Ancestor(kernels.candidate_id(OLD), 1, "initial"),
        Ancestor(kernels.candidate_id(NEW), 2, "mutate"),
    )
    assert bundle.verified_at == 1003.0
    assert bundle.machine == {"cpu": "Example CPU 9000"}
    assert "-march=native" in bundle.flags


def test_recorded_flags_win() -> None:
    first = started(flags=["-O1", "-shared", "-fPIC"])
    bundle = bundle_of(judged(Depth.FULL, Status.VERIFIED), first=first)
    assert bundle.flags == ("-O1", "-shared", "-fPIC")


S, F, C = Depth.SCREEN, Depth.FULL, Depth.CONFIRM


@pytest.mark.parametrize(
    ("verdicts", "kept"),
    [
        ([(S, Status.SCREENED), (F, Status.VERIFIED)], 1),
        ([(F, Status.VERIFIED), (S, Status.SCREENED)], 0),
        ([(F, Status.VERIFIED), (C, Status.VERIFIED)], 1),
        ([(F, Status.VERIFIED), (C, Status.INCORRECT)], 1),
        ([(C, Status.VERIFIED), (S, Status.INCORRECT)], 1),
        ([(C, Status.INCORRECT), (F, Status.VERIFIED)], 0),
        ([(F, Status.VERIFIED), (C, Status.HARNESS_ERROR)], 0),
        ([(C, Status.HARNESS_ERROR), (S, Status.SCREENED)], 1),
        ([(F, Status.TIMED_OUT), (F, Status.VERIFIED)], 1),
    ],
)
def test_the_weightiest_verdict_counts(verdicts: list[tuple[Depth, Status]], kept: int) -> None:
    bundle = bundle_of(*(judged(*verdict) for verdict in verdicts))
    assert (bundle.verdict.protocol, bundle.verdict.status) == verdicts[kept]
    assert bundle.verified_at == 1003.0 + kept


def test_other_candidates_verdicts_do_not_count() -> None:
    with pytest.raises(UsageError, match="was never evaluated"):
        bundle_of(judged(Depth.FULL, Status.VERIFIED, OLD))


def test_an_unknown_candidate_is_told() -> None:
    with pytest.raises(UnknownNameError, match="no candidate of campaign c-1"):
        bundle_from_store(Memory([started()]), CAMPAIGN, "f" * 64)


def test_a_campaign_that_does_not_describe_its_problem_is_told() -> None:
    first = started().model_copy(update={"config": {}})
    with pytest.raises(StorageError, match=r"config\.problem"):
        bundle_of(judged(Depth.FULL, Status.VERIFIED), first=first)
    with pytest.raises(StorageError, match=r"config\.problem\.axes"):
        bundle_of(judged(Depth.FULL, Status.VERIFIED), first=started(axes=3))
    with pytest.raises(StorageError, match="no first event"):
        bundle_from_store(Memory([]), CAMPAIGN, "f" * 64)
