"""`transpile` against a played model and the played referee."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.running import run_campaign
from kernelwright.tests.agents.asked import as_it_says, kernel, source
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows.staged import (
    Improviser,
    Scene,
    decided,
    decided_at,
    referee,
    request,
    seats,
)
from kernelwright.traces.decisions import Born, HandedOver, ModuleChecked
from kernelwright.traces.events import CandidateProposed
from kernelwright.traces.records import Status, candidate_id
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

CUDA = """
__global__ void doubled(const float* x, float* y, int n) {
  __shared__ float tile[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) tile[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) y[i] = 2 * tile[threadIdx.x];
}
"""
TORCH = "import torch\n\ndef forward(x):\n    return 2 * x\n"
CHAIN = {
    "0/0/translate/1": kernel(fails="BUILD_FAILED"),
    "1/0/repair/1": kernel(fails="INCORRECT"),
    "2/0/repair/1": kernel(step=2),
    "3/0/judge/1": "wider",
    "3/0/optimise/1": kernel(fails="CRASHED"),
    "4/0/judge/1": "wider still",
    "4/0/optimise/1": kernel(step=9),
    "5/0/judge/1": "more",
    "5/0/optimise/1": kernel(step=5),
    "6/0/judge/1": "less",
    "6/0/optimise/1": kernel(step=12),
}


def test_a_translation_is_fixed_then_made_faster(store: Store) -> None:
    model = Improviser(CHAIN)
    result = run_campaign(request("transpile", source=CUDA), store, referee(), players=seats(model))
    assert model.asked == list(CHAIN)
    assert result.stopped_by == "rounds"
    assert result.best is not None
    assert result.best.candidate == candidate_id(source(step=12))
    prompts = {a.messages[0].content.split("\n")[0]: a.messages[0].content for a in model.asks}
    first = prompts["0/0/translate/1"]
    assert CUDA.strip() in first
    assert "told the source's kernels: doubled" in first
    # Every optimisation edits the best so far, not what it came after.
    right, best = candidate_id(source(step=2)), candidate_id(source(step=9))
    bases = [prompts[f"{n}/0/optimise/1"].split("base ")[1].split()[0] for n in range(3, 7)]
    assert bases == [right, right, best, best]


def test_three_fixes_and_no_more(store: Store) -> None:
    """A10: a model that never gets it right stops at the bound."""
    model = Improviser(answer=lambda place: kernel(fails="BUILD_FAILED", tag=place))
    result = run_campaign(request("transpile", source=CUDA), store, referee(), players=seats(model))
    assert model.asked == ["0/0/translate/1"] + [f"{n}/0/repair/1" for n in (1, 2, 3)]
    assert (result.best, result.stopped_by) == (None, "no candidate")


def test_torch_is_converted(store: Store) -> None:
    model = Improviser({"0/0/convert/1": kernel(step=2)})
    asked = request("transpile", 1, source=TORCH)
    result = run_campaign(asked, store, referee(), players=seats(model))
    assert model.asked == ["0/0/convert/1"]
    assert result.best is not None


def test_the_module_itself_is_verified_and_the_coder_is_told(store: Store) -> None:
    played = referee()
    fate = played.fate
    played.fate = lambda order: Status.INCORRECT if order.language == "python" else fate(order)
    model = Improviser({"0/0/convert/1": kernel(step=2)})
    asked = request("transpile", 1, source=TORCH)
    result = run_campaign(asked, store, played, players=seats(model))
    (checked,) = decided(store.events(result.campaign), ModuleChecked)
    assert checked.status == "INCORRECT"
    itself = store.get_blob(checked.candidate).decode()
    assert itself.startswith(TORCH)
    assert "class ModelNew" in itself
    prompt = model.asks[0].messages[0].content
    assert "told the source itself was run on the task's tests and is INCORRECT" in prompt
    assert "played INCORRECT" in prompt
    assert result.best is not None
    assert result.best.candidate == candidate_id(source(step=2))


def test_what_was_run_for_comparison_wins_nothing(store: Store) -> None:
    model = Improviser(answer=lambda place: kernel(fails="BUILD_FAILED", tag=place))
    asked = request("transpile", source=TORCH)
    result = run_campaign(asked, store, referee(), players=seats(model))
    assert (result.best, result.unconfirmed) == (None, None)
    assert result.by_status == {"SCREENED": 1, "BUILD_FAILED": 4}


class Tunable(PlayedReferee):
    """Its candidates are as fast as their constants are large."""

    def _latency_us(self, order: Order, source: str) -> float:
        del order
        found = re.search(r"#define STEP (\d+)", source)
        return 900.0 / (1.0 + 0.05 * int(found[1])) if found else 900.0


def test_named_constants_are_tried_without_a_model(store: Store) -> None:
    text = "#define STEP 8\n#define OTHER 4\n" + source(step=0)
    model = Improviser({"0/0/translate/1": f"```\n{text}```\n"})
    asked = request("transpile", source=CUDA, options={"tunings": 3, "optimisations": 0})
    result = run_campaign(asked, store, Tunable(fate=as_it_says), players=seats(model))
    assert model.asked == ["0/0/translate/1"]
    proposed = [
        p for e in store.events(result.campaign) if isinstance(p := e.payload, CandidateProposed)
    ]
    assert [(str(p.place), p.operator, p.strategy) for p in proposed[1:]] == [
        ("1/0", "tune", "STEP = 16 instead of 8"),
        ("2/0", "tune", "OTHER = 8 instead of 4"),
        ("3/0", "tune", "STEP = 4 instead of 8"),
    ]
    assert all(p.parents == (candidate_id(text),) for p in proposed[1:])
    assert result.best is not None
    assert result.best.candidate == candidate_id(text.replace("STEP 8", "STEP 16"))


@pytest.mark.parametrize("to", ["forge", "evolve"])
def test_another_workflow_goes_on_with_the_right_translation(store: Store, to: str) -> None:
    model = Improviser(
        {"0/0/translate/1": kernel(fails="BUILD_FAILED"), "1/0/repair/1": kernel(step=2)}
    )
    asked = request("transpile", 3, source=CUDA, options={"hand_over": to})
    result = run_campaign(asked, store, referee(), players=seats(model))
    events = store.events(result.campaign)
    (over,) = decided(events, HandedOver)
    seed = candidate_id(source(step=2))
    assert (over.best, over.round) == (seed, 2)
    proposed = [p for e in events if isinstance(p := e.payload, CandidateProposed)]
    later = proposed[2:]
    if to == "forge":
        assert [str(p.place) for p in later] == ["2/0", "3/0", "4/0"]
        assert later[0].parents == (seed,)
        assert "2/0/judge/1" in model.asked
    else:
        assert {p.place.round for p in later} == {3, 4, 5}
        first = [p for p in later if p.place.round == 3]
        assert len(first) >= 8
        assert all(seed in p.parents for p in first)
        born = decided_at(events, Born).items()
        founders = [d for at, d in born if at.startswith("2/")]
        assert [d.island for d in founders] == [0, 1, 2, 3]
    assert result.stopped_by == "rounds"
    assert result.best is not None
    assert len(later) > 0


def test_the_source_is_a_blob_and_stands_in_no_event(store: Store) -> None:
    asked = request("transpile", 1, source=CUDA)
    result = run_campaign(asked, store, referee(), players=seats(Improviser(CHAIN)))
    events = store.events(result.campaign)
    assert store.get_blob(events[0].payload.source).decode() == CUDA  # type: ignore[union-attr]
    assert "__global__" not in "".join(event.model_dump_json() for event in events)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "needs a source"),
        ({"source": "   "}, "needs a source"),
        ({"source": "int main() {}"}, "neither CUDA"),
        ({"source": CUDA, "language": "triton"}, "not to triton"),
        ({"source": CUDA, "model": "played", "options": {"fixes": -1}}, "fixes"),
    ],
)
def test_what_cannot_be_translated_is_refused(
    store: Store, settings: dict[str, object], said: str
) -> None:
    asked = request("transpile", **{"model": "played", **settings})
    with pytest.raises(UsageError, match=said):
        run_campaign(asked, store, referee(), players=seats(Improviser()))
    assert store.campaigns() == []


@pytest.mark.slow
@pytest.mark.parametrize("to", ["forge", "evolve"])
def test_b7_a_death_before_and_behind_a_hand_over_changes_nothing(tmp_path: Path, to: str) -> None:
    """B7: two graphs, one after the other, and a source that was itself verified."""
    script = {
        "0/0/convert/1": f"```\n#define STEP 8\n{source(step=1)}```\n",
        "2/0/judge/1": "wider",
    }
    asked = request(
        "transpile",
        3 if to == "forge" else 1,
        source=TORCH,
        options={"hand_over": to, "tunings": 1},
    )
    scene = Scene(asked, lambda: Improviser(script))
    assert scene.survives(tmp_path, every=5, cursors=("kept",)) > 4
