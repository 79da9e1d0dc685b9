"""Each workflow once with the real referee: scripted words, real builds, real verdicts.

The replies are as a model gives them, read by the brains that read models. A small workload keeps
an evaluation at seconds; nothing is said of times but that they are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.casting.cast import recording_of, replay_request
from kernelwright.agents.models.choosing import ModelSettings
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes.catalogue import recipes_for
from kernelwright.running import CampaignRequest, CampaignResult, run_campaign
from kernelwright.tests.agents.deciding import decisions
from kernelwright.tests.agents.workflows.staged import decided
from kernelwright.traces.decisions import (
    Compared,
    Credited,
    ExemplarsChosen,
    GenerationPlanned,
    KnobsTuned,
    ModuleChecked,
)
from kernelwright.traces.events import (
    AdviceGiven,
    CandidateProposed,
    EvaluationFinished,
    ModelRequested,
)
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.store import Store
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Task

pytestmark = pytest.mark.slow

HEAD = """#include <algorithm>
#include <cmath>
#include <limits>
extern "C" void softmax(int M, int N, const float* __restrict x, float* __restrict y) {
"""
BODY = """#pragma omp parallel for schedule(SCHEDULE)
  for (int i = 0; i < M; ++i) {
    const float* in = x + (long)i * N;
    float* out = y + (long)i * N;
    float top = -std::numeric_limits<float>::infinity();
    for (int j = 0; j < N; ++j) {
      if (std::isnan(in[j])) { top = in[j]; break; }
      top = std::max(top, in[j]);
    }
    double sum = 0;
    for (int j = 0; j < N; ++j) { out[j] = std::exp(in[j] - top); sum += out[j]; }
    const float scale = float(1.0 / sum);
    for (int j = 0; j < N; ++j) out[j] *= scale;
  }
}
"""
SCHEDULES = ("static", "dynamic", "static, 4", "guided", "dynamic, 2", "static, 8")


def source(number: int) -> str:
    return HEAD + BODY.replace("SCHEDULE", SCHEDULES[number % len(SCHEDULES)])


def said(code: str, language: str = "cpp", first: str = "") -> str:
    return f"{first}Strategy: rows over threads.\nTechniques: none\n\n```{language}\n{code}```\n"


WRONG = source(0).replace("out[j] *= scale", "out[j] *= 2 * scale")
BROKEN = source(0).replace("double sum", "dubble sum")
CUDA = """
extern "C" __global__ void softmax(int M, int N, const float* x, float* y) {
  __shared__ float part[256];
  int row = blockIdx.x;
  float top = -INFINITY;
  for (int j = threadIdx.x; j < N; j += 256) top = fmaxf(top, x[row * N + j]);
  part[threadIdx.x] = top;
  __syncthreads();
}
"""
ADVICE = json.dumps(
    {
        "bottleneck": "threads wait for each other",
        "method": "another schedule",
        "plan": "Give rows to threads in another order.",
        "technique": "none",
        "evidence": [],
    }
)


@pytest.fixture(scope="module")
def referee(shared_cache: Path) -> Iterator[RefereeProcess]:
    with open_referee(task("softmax", shared_cache)) as opened:
        yield opened


def task(problem: str, cache: Path, target: str = "cpu", language: str = "") -> Task:
    workload = registry.workload_for(registry.get(problem), "tiny")
    return Task(
        problem=problem,
        workload=workload,
        cache_dir=str(cache),
        target=target,
        baselines=("torch eager",),
        languages=(language,) if language else (),
    )


def play(
    tmp_path: Path, referee: Any, workflow: str, turns: list[dict[str, str]], **settings: Any
) -> tuple[CampaignResult, Store]:
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps(turn) for turn in turns))
    name = f"scripted:{script}"
    asked = CampaignRequest.model_validate(
        {"problem": "softmax", "workload": "tiny", "workflow": workflow, "model": name, **settings}
    )
    store = Store.open(tmp_path / "home")
    return run_campaign(asked, store, referee, settings=ModelSettings()), store


def statuses(store: Store, result: CampaignResult) -> list[Status]:
    found = [e.payload for e in store.events(result.campaign)]
    return [
        p.verdict.status
        for p in found
        if isinstance(p, EvaluationFinished) and p.verdict.protocol is Depth.SCREEN
    ]


@pytest.mark.timed
def test_contrast(tmp_path: Path, referee: RefereeProcess) -> None:
    drafts = [{"purpose": "write", "text": said(source(n))} for n in range(4)]
    contrast = [
        {"purpose": "contrast", "text": said(source(4 + n), first="Faster: A\n")} for n in range(2)
    ]
    result, store = play(tmp_path, referee, "contrast", drafts + contrast, rounds=3)
    with store:
        assert statuses(store, result) == [Status.SCREENED] * 6
        assert len(decided(store.events(result.campaign), ExemplarsChosen)) == 2
    assert result.best is not None
    assert result.best.status == Status.VERIFIED


@pytest.mark.timed
def test_features(tmp_path: Path, referee: RefereeProcess) -> None:
    turns = [
        {"purpose": "features", "text": said(text)}
        for text in (source(0), WRONG, source(1), source(2))
    ]
    turns += [{"purpose": "repair", "text": said(source(3))}]
    result, store = play(tmp_path, referee, "features", turns, rounds=2, options={"proposals": 2})
    with store:
        assert statuses(store, result).count(Status.INCORRECT) == 1
        assert len(decided(store.events(result.campaign), Credited)) == 2
    assert (result.evaluated, result.stopped_by) == (5, "rounds")
    assert result.best is not None


@pytest.mark.timed
def test_transpile_cuda_to_cpp(tmp_path: Path, referee: RefereeProcess) -> None:
    turns = [
        {"purpose": "translate", "text": said(BROKEN)},
        {"purpose": "repair", "text": said(WRONG)},
        {"purpose": "repair", "text": said(source(0))},
        {"purpose": "optimise", "text": said(source(1))},
    ]
    result, store = play(
        tmp_path, referee, "transpile", turns, source=CUDA, options={"optimisations": 1}
    )
    with store:
        assert statuses(store, result) == [
            Status.BUILD_FAILED,
            Status.INCORRECT,
            Status.SCREENED,
            Status.SCREENED,
        ]
        events = store.events(result.campaign)
        assert len([e for e in events if isinstance(e.payload, AdviceGiven)]) == 1
    assert result.best is not None


TUNABLE = """/*---
[knobs]
PASSES = {value = 6, try = [1, 3, 6]}
---*/
""" + source(0).replace(
    "extern", "constexpr int PASSES = 6;  // over each row: one is enough\nextern"
).replace(
    "    double sum = 0;\n",
    "    double sum = 0;\n    for (int pass = 0; pass < PASSES; ++pass) { sum = 0;\n",
).replace("sum += out[j]; }\n", 'sum += out[j]; }\n    asm volatile("" ::: "memory"); }\n')


@pytest.mark.heavy
@pytest.mark.timed
def test_the_knobs_of_the_first_kernel_are_tuned_without_a_call(
    tmp_path: Path, referee: RefereeProcess
) -> None:
    turns = [{"purpose": "write", "text": said(TUNABLE)}]
    result, store = play(tmp_path, referee, "forge", turns, rounds=1)
    with store:
        events = store.events(result.campaign)
        asked = [e for e in events if isinstance(e.payload, ModelRequested)]
        (tuned,) = decided(events, KnobsTuned)
        assert statuses(store, result) == [Status.SCREENED] * 3
        assert result.best is not None
        best = store.get_blob(result.best.candidate).decode()
        again = run_campaign(
            replay_request(
                CampaignRequest(problem="softmax"), recording_of(store, result.campaign)
            ),
            store,
            referee,
        )
        assert decisions(store.events(again.campaign)) == decisions(events)
    assert len(asked) == 1
    assert (tuned.best, tuned.tried, tuned.points) == (result.best.candidate, 2, 3)
    assert result.best.status == Status.VERIFIED
    assert "constexpr int PASSES = 1;" in best
    assert "PASSES = {value = 1," in best


@pytest.mark.heavy
@pytest.mark.timed
def test_transpile_torch_to_cpp(tmp_path: Path, referee: RefereeProcess) -> None:
    """The module itself is verified first; the constant of the candidate is tried as others."""
    torch = "import torch\n\n\ndef forward(x):\n    return torch.softmax(x, dim=-1)\n"
    turns = [{"purpose": "convert", "text": said("#define CHUNK 8\n" + source(0))}]
    result, store = play(
        tmp_path,
        referee,
        "transpile",
        turns,
        source=torch,
        options={"optimisations": 0, "tunings": 1},
    )
    with store:
        events = store.events(result.campaign)
        (checked,) = decided(events, ModuleChecked)
        assert checked.status == "SCREENED"
        assert statuses(store, result) == [Status.SCREENED] * 3
        operators = [e.payload.operator for e in events if isinstance(e.payload, CandidateProposed)]
        assert operators == ["source", "convert", "tune"]
    assert result.best is not None


@pytest.mark.timed
def test_transpile_tells_of_a_module_that_computes_something_else(
    tmp_path: Path, referee: RefereeProcess
) -> None:
    torch = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
"""
    turns = [{"purpose": "convert", "text": said(source(0))}]
    result, store = play(
        tmp_path,
        referee,
        "transpile",
        turns,
        source=torch,
        options={"optimisations": 0, "tunings": 0},
    )
    with store:
        events = store.events(result.campaign)
        (checked,) = decided(events, ModuleChecked)
        asked = next(e.payload for e in events if isinstance(e.payload, ModelRequested))
        prompt = store.get_blob(asked.ask).decode()
    assert checked.status == "INCORRECT"
    assert "the source itself was run on the task's tests and is INCORRECT" in prompt
    assert result.best is not None


@pytest.mark.timed
def test_evolve_by_generations(tmp_path: Path, referee: RefereeProcess) -> None:
    turns = [
        {"purpose": "", "text": said(text)}
        for text in (
            source(0),
            WRONG,
            source(1),
            source(1) + "// a copy\n",
            source(2),
            source(3),
            source(4),
            source(5),
            *[source(n) for n in range(6)],
        )
    ]
    result, store = play(
        tmp_path,
        referee,
        "evolve",
        turns,
        rounds=2,
        options={"proposals": 4, "islands": 2, "reflect_every": 0},
    )
    with store:
        events = store.events(result.campaign)
        proposed = [e for e in events if isinstance(e.payload, CandidateProposed)]
        assert decided(events, Compared)
        assert result.evaluated < len(proposed)
    assert result.best is not None
    assert result.by_status["INCORRECT"] == 1


@pytest.mark.timed
def test_recipes_are_tuned_one_at_a_time(tmp_path: Path, referee: RefereeProcess) -> None:
    with Store.open(tmp_path / "home") as store:
        asked = CampaignRequest(problem="softmax", workload="tiny", limits={"evaluations": 4})
        result = run_campaign(asked, store, referee)
        assert decided(store.events(result.campaign), GenerationPlanned) == []
    assert result.evaluated == 4
    assert result.best is not None


@pytest.mark.heavy
@pytest.mark.parametrize("language", ["cuda", "triton"])
def test_forge_under_emulated_screening(tmp_path: Path, shared_cache: Path, language: str) -> None:
    """A wrong kernel, its repair and an optimisation, screened where no device is at hand."""
    texts = [recipe.render(recipe.first_knobs()) for recipe in recipes_for("softmax", language)][:2]
    wrong = _wrong(texts[0], language)
    fence = "cuda" if language == "cuda" else "python"
    turns = [
        {"purpose": "write", "text": said(wrong, fence)},
        {"purpose": "repair", "text": said(texts[0], fence)},
        {"purpose": "optimise", "text": said(texts[1], fence)},
    ]
    with open_referee(task("softmax", shared_cache, "sm_90", language)) as opened:
        result, store = play(
            tmp_path, opened, "forge", turns, rounds=3, target="sm_90", language=language
        )
    with store:
        found = statuses(store, result)
        events = store.events(result.campaign)
    assert found[0] in (Status.INCORRECT, Status.BUILD_FAILED)
    assert found[1:] == [Status.SCREENED, Status.SCREENED]
    verdicts = [p.verdict for e in events if isinstance(p := e.payload, EvaluationFinished)]
    assert all(verdict.emulated for verdict in verdicts if verdict.status.is_pass)
    advice = [p.advice for e in events if isinstance(p := e.payload, AdviceGiven)]
    assert [a.candidate for a in advice] == [v.candidate for v in verdicts[:2]]
    assert result.best is None, "nothing was timed: nobody is credited"


def _wrong(text: str, language: str) -> str:
    """The same kernel with rows that add up to two."""
    right, other = {
        "cuda": ("* scale;", "* (2.0f * scale);"),
        "triton": ("risen / tl.sum", "2.0 * risen / tl.sum"),
    }[language]
    assert right in text
    return text.replace(right, other)
