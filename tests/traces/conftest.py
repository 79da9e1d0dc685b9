"""A realistic campaign, written through the real store: every status, a cut-off evaluation."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.traces.events import (
    AdviceGiven,
    CampaignFinished,
    CampaignPrepared,
    CampaignStarted,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
)
from kernelwright.traces.preparation import Bounds
from kernelwright.traces.records import (
    CAPABILITIES,
    Advice,
    Capability,
    Check,
    Depth,
    Enforcement,
    Isolation,
    Level,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Status,
    Timing,
    Verdict,
)
from kernelwright.traces.store import Store

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"

ISOLATION = Isolation(
    mechanism="bubblewrap",
    capabilities={
        name: Capability(state=Enforcement.ENFORCED, how="own namespace") for name in CAPABILITIES
    }
    | {"mem": Capability(state=Enforcement.PARTIAL, how="polled every 20 ms: no cgroup")},
)
PREPARED = CampaignPrepared(
    seconds={"referee": 1.5, "baselines": 4.5},
    baselines=("torch eager",),
    bounds=Bounds(
        floor_us=120.0,
        roof="float32 multiply-adds",
        source="measured here",
        bytes=4e6,
        flops=8e6,
        gbs=30.0,
        gflops=100.0,
    ),
)
VERSIONS = {"kernelwright": "0.1.0", "compiler": "g++ 12.2.0", "python": "3.11.2", "torch": "2.13"}
REASONS = {
    Status.INCORRECT: "output C: error 3.2e-3 at (7, 12) is 410 times the bound of gate G1",
    Status.NOT_DISCRIMINATING: "a kernel that writes zeros passes on these inputs",
    Status.SUSPECT: "the claimed time is 0.02 of the referee's own clock",
    Status.BUILD_FAILED: "g++ ended with status 1: 'vld' was not declared",
    Status.CRASHED: "signal 11 (segmentation fault) on workload tail-13",
    Status.TIMED_OUT: "no answer within 30 s of wall clock on workload powerlaw",
    Status.RESOURCE: "the process tree grew beyond 4.0 GiB of memory",
    Status.PROTOCOL_ERROR: "the runner closed its channel before it answered",
    Status.HARNESS_ERROR: "the referee lost its jail twice",
    Status.UNSUPPORTED: "the front matter asks for avx512, which this machine lacks",
}
PLAN = (
    Status.SCREENED,
    Status.VERIFIED,
    Status.INCORRECT,
    Status.VERIFIED,
    Status.BUILD_FAILED,
    Status.CRASHED,
    Status.VERIFIED,
    Status.TIMED_OUT,
    Status.SUSPECT,
    Status.RESOURCE,
    Status.PROTOCOL_ERROR,
    Status.NOT_DISCRIMINATING,
    Status.HARNESS_ERROR,
    Status.UNSUPPORTED,
    Status.VERIFIED,
    Status.SCREENED,
)
"""The statuses of candidates 1 … 16; 17 is cut off while it is evaluated, 18 only proposed."""


@dataclass(frozen=True)
class Sample:
    """The campaign that was written."""

    home: Path
    campaign: str
    candidates: tuple[str, ...]
    champion: str
    hostile: str = HOSTILE
    """The words that stand in sources, logs and advice, and must never become markup."""


def source_of(number: int, marker: str = "") -> str:
    """The source of candidate `number`; neighbours differ in a few lines."""
    body = "\n".join(f"    // step {line} of the sum stays as it is" for line in range(24))
    return (
        '/*---\nentry = "spmm_csr"\nlanguage = "cpp"\n---*/\n#include <immintrin.h>\n'
        f"// candidate {number} {marker}\n"
        'extern "C" void spmm_csr(int M, int N, const int* indptr, const float* B, float* C) {\n'
        f"    #pragma omp parallel for schedule(dynamic, {2**number})\n"
        "    for (int row = 0; row < M; ++row) {\n"
        f"{body}\n        C[row * N] = {number}.0f * B[indptr[row]];\n    }}\n}}\n"
    )


def timing(median: float, rng: random.Random) -> Timing:
    samples = tuple(round(median * rng.gauss(1, 0.02), 3) for _ in range(40))
    return Timing(
        median_us=median, low_us=median * 0.985, high_us=median * 1.02, samples_us=samples
    )


def measurement(speedup: float, workload: str, rng: random.Random) -> Measurement:
    base = 1840.0
    baselines = {"torch eager": base, "torch.compile": base * 1.04, "scipy": base * 2.6}
    mine = base / speedup
    return Measurement(
        workload=workload,
        candidate=timing(mine, rng),
        baselines={name: timing(value, rng) for name, value in baselines.items()},
        speedup={
            name: Speedup(median=v / mine, low=v / mine * 0.97, high=v / mine * 1.03)
            for name, v in baselines.items()
        },
        best_baseline="torch eager",
        pairs=60,
        mde=0.012,
        floor_us=410.0,
        roofline=410.0 / mine,
        clock_ratio=1.003,
        cpu_us=mine * 1.94,
        threads=2,
        is_launch_bound=mine < 900,
    )


def verdict_of(
    candidate: str, status: Status, protocol: Depth, speedup: float, rng: random.Random
) -> Verdict:
    failed = not status.is_pass
    checks = [
        Check(name="null kernel", passed=True, detail="zeros and copies are told apart"),
        Check(
            name="G1 condition-scaled error",
            passed=status is not Status.INCORRECT,
            figure=3.2e-3 if failed else 4.1e-8,
            limit=7.8e-6,
            workload="tail-13",
            detail="worst at (7, 12)",
        ),
        Check(name="guard bands", passed=True, figure=0, limit=0, workload="powerlaw"),
        Check(name="two clocks", passed=status is not Status.SUSPECT, figure=1.003, limit=1.25),
    ]
    measured = status is Status.VERIFIED
    return Verdict(
        candidate=candidate,
        problem="spmm_csr",
        workload="powerlaw-4k",
        language="cpp",
        target="cpu",
        protocol=protocol,
        status=status,
        reasons=(REASONS[status],) if failed else (),
        checks=tuple(checks) if status is not Status.BUILD_FAILED else (),
        unchecked=("sanitizers: not run, libasan is not installed",) if measured else (),
        measurements=tuple(measurement(speedup, w, rng) for w in ("powerlaw-4k", "banded-8k"))
        if measured
        else (),
        profile=Profile(
            metrics=(
                Metric(name="vector_share", value=0.62, unit="1", level=Level.STATIC),
                Metric(name="gflops", value=3.1 * speedup, unit="GFLOP/s", level=Level.MEASURED),
                Metric(name="bytes_per_flop", value=5.2, unit="B", level=Level.MODELLED),
            ),
            remarks=("loop at line 9 vectorised with 32-byte vectors",),
        )
        if measured
        else None,
        isolation=ISOLATION,
        seed="9f" * 16,
        seconds={"build": 0.71, "verify": 1.9, "time": 2.4} if measured else {"build": 0.4},
        versions=VERSIONS,
        artefact="ab" * 32,
        log=f"kernel.cpp:9:5: error: 'vld' was not declared {HOSTILE}"
        if status is Status.BUILD_FAILED
        else "",
    )


def started(problem: str = "spmm_csr") -> CampaignStarted:
    """The first event of a campaign."""
    return CampaignStarted(
        problem=problem,
        workload="powerlaw-4k",
        workload_spec={"name": "powerlaw-4k", "kind": "realistic", "axes": {"M": 4096, "N": 32}},
        target="cpu",
        language="cpp",
        tier="native",
        workflow="evolve",
        model="recipe",
        judge_model="rule",
        seed=7,
        limits={"evaluations": 40, "seconds": 120},
        machine={"cpu": "AMD EPYC 7B13", "cores": "2", "memory": "8.0 GiB", "kernel": "6.18"},
        versions=VERSIONS,
        config={"home": "/home/alice/.local/share/kernelwright", "api_key": "sk-secret-1234567890"},
    )


def write_campaign(home: Path, *, is_finished: bool = True, marker: str = HOSTILE) -> Sample:
    """Writes the sample campaign into `home` with the real store."""
    rng = random.Random(7)
    with Store.open(home) as store:
        campaign = store.create(started())
        store.append(campaign, PREPARED)
        ids: list[str] = []
        champion = ""
        best = 0.0
        for number in range(1, len(PLAN) + 3):
            candidate = store.put_blob(source_of(number, marker))
            store.append(
                campaign,
                CandidateProposed(
                    candidate=candidate,
                    number=number,
                    language="cpp",
                    family="nnz-balanced" if number % 3 else "row-balanced",
                    knobs={"chunk": 2**number, "unroll": 4},
                    parents=(champion,) if champion else tuple(ids[-1:]),
                    operator="initial" if number == 1 else ("mutate", "advised")[number % 2],
                    note="doubles the chunk" if number > 1 else "",
                ),
            )
            ids.append(candidate)
            if number > len(PLAN) + 1:
                break
            status = PLAN[number - 1] if number <= len(PLAN) else None
            protocol = Depth.SCREEN if status is Status.SCREENED else Depth.FULL
            store.append(campaign, EvaluationStarted(candidate=candidate, protocol=protocol))
            if status is None:
                continue
            speedup = 0.82 + number * 0.11
            verdict = verdict_of(candidate, status, protocol, speedup, rng)
            store.append(campaign, EvaluationFinished(verdict=verdict))
            if status is Status.VERIFIED:
                confirmed = verdict_of(candidate, status, Depth.CONFIRM, speedup, rng)
                store.append(campaign, EvaluationStarted(candidate=candidate, protocol="confirm"))
                store.append(campaign, EvaluationFinished(verdict=confirmed))
                if confirmed.credited > max(best, 1.0):
                    best = confirmed.credited
                    store.append(
                        campaign,
                        ChampionChanged(
                            candidate=candidate, previous=champion or None, credited=best
                        ),
                    )
                    champion = candidate
            store.append(campaign, AdviceGiven(advice=advice_on(candidate, marker)))
        if is_finished:
            store.append(campaign, CampaignFinished(stopped_by="evaluations", best=champion))
    return Sample(home, campaign, tuple(ids), champion)


def advice_on(candidate: str, marker: str) -> Advice:
    return Advice(
        candidate=candidate,
        bottleneck="load imbalance",
        change=f"Split rows by their number of non-zeros {marker}",
        rests_on={"cv_row": 3.6, "vector_share": 0.62},
        hints={"family": "nnz-balanced", "chunk": [16, 64]},
    )


@pytest.fixture(scope="session")
def written_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A finished campaign, written once; tests get copies."""
    return write_campaign(tmp_path_factory.mktemp("sample") / "home")


@pytest.fixture
def sample(tmp_path: Path, written_sample: Sample) -> Sample:
    """A finished campaign in its own home."""
    shutil.copytree(written_sample.home, tmp_path / "home")
    return replace(written_sample, home=tmp_path / "home")


@pytest.fixture
def write_sample(tmp_path: Path) -> Callable[..., Sample]:
    """Writes further campaigns into the same home."""

    def write(**options: object) -> Sample:
        return write_campaign(tmp_path / "home", **options)  # type: ignore[arg-type]

    return write


@pytest.fixture
def new_campaign() -> CampaignStarted:
    """The first event of a campaign of spmm_csr."""
    return started()


@pytest.fixture(scope="session")
def written_asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A campaign that asked models, written once; tests get copies."""
    from kernelwright.tests.traces.asked_sample import write_asked

    return write_asked(tmp_path_factory.mktemp("asked") / "home")


@pytest.fixture
def asked(tmp_path: Path, written_asked: Any) -> Any:
    """A campaign that asked models in its own home."""
    shutil.copytree(written_asked.home, tmp_path / "asked")
    return replace(written_asked, home=tmp_path / "asked")


@pytest.fixture
def unpriced(tmp_path: Path) -> Any:
    """One whose model has no known price."""
    from kernelwright.tests.traces.asked_sample import AskedSample, Writer, begun

    with Store.open(tmp_path / "unpriced") as store:
        writer = Writer(store, store.create(begun()))
        writer.answer(writer.request("0/0/write/0", "write", "Write.", price=None), "x", usd=None)
        writer.propose("0/0", "write", Status.VERIFIED)
    return AskedSample(tmp_path / "unpriced", writer.campaign, tuple(writer.candidates))
