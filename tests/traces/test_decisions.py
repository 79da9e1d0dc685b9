"""Decisions: every kind is kept, earlier forms are read, and what is not known still opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelwright.traces.decisions import (
    KINDS,
    AnyDecision,
    Born,
    Credited,
    Cut,
    GenerationPlanned,
    OtherDecision,
    PlannedSlot,
    read_decision,
)
from kernelwright.traces.events import CampaignStarted, Decided, payload_adapter
from kernelwright.traces.place import Place
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import transcribe

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
NAMES = [kind.model_fields["what"].default for kind in KINDS]

STORED: list[tuple[dict[str, Any], AnyDecision]] = [
    (
        {"what": "niche", "details": {"candidate": "c", "version": 1, "niche": "n", "island": 2}},
        Born(candidate="c", version=1, niche="n", island=2),
    ),
    (
        {
            "what": "feature credited",
            "details": {"candidate": "c", "bound": "b", "used": ["u"], "gain": None, "depth": 1},
        },
        Credited(
            what="feature credited", candidate="c", bound="b", used=("u",), gain=None, depth=1
        ),
    ),
    (
        {
            "what": "generation",
            "details": {
                "slots": [
                    {
                        "operator": "edit",
                        "mode": "optimise",
                        "island": 0,
                        "base": "c",
                        "exemplars": [],
                        "features": [],
                        "advice": "0/leader",
                    }
                ]
            },
        },
        GenerationPlanned(
            slots=(
                PlannedSlot(
                    operator="edit", mode="optimise", island=0, base="c", advice=Place(0, "leader")
                ),
            )
        ),
    ),
    ({"what": "round cut short", "details": {"by": "usd"}}, Cut(by="usd")),
    (
        {"what": "advice replaced", "details": {"why": "x"}},
        OtherDecision(what="advice replaced", details={"why": "x"}),
    ),
    (
        {"what": "niche", "details": {"candidate": "c", "colour": "red"}},
        OtherDecision(what="niche", details={"candidate": "c", "colour": "red"}),
    ),
    ({"what": "a word"}, OtherDecision(what="a word")),
]


@pytest.mark.parametrize(("stored", "decision"), STORED)
def test_what_earlier_versions_stored_is_read(
    stored: dict[str, Any], decision: AnyDecision
) -> None:
    decided = payload_adapter.validate_python({"kind": "decided", "place": "3/1", **stored})
    assert decided == Decided(place=Place(3, 1), decision=decision)
    assert payload_adapter.validate_json(decided.model_dump_json()) == decided
    shown = stored.get("details", {})
    assert {name: decision.facts[name] for name in shown} == shown


@given(st.text(max_size=9) | st.sampled_from(NAMES), st.dictionaries(st.text(max_size=9), JSON))
def test_any_stored_decision_opens_and_is_kept(what: str, details: dict[str, Any]) -> None:
    stored = {"kind": "decided", "place": "0/0", "what": what, "details": details}
    decided = payload_adapter.validate_python(stored)
    assert isinstance(decided, Decided)
    assert decided.decision.what == what
    if isinstance(decided.decision, OtherDecision):
        assert decided.decision.facts == details
    assert payload_adapter.validate_json(decided.model_dump_json()).decision.facts == (
        decided.decision.facts
    )


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(set(NAMES)) == len(KINDS)


def test_what_says_nothing_is_no_decision() -> None:
    with pytest.raises(ValueError, match="says what was decided"):
        read_decision({"details": {}})
    with pytest.raises(ValidationError):
        payload_adapter.validate_python({"kind": "decided", "place": "0/0"})


def test_a_store_keeps_what_it_does_not_know(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    odd = OtherDecision(what="a word", details={"of": ["a", "later", "version"]})
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        store.append(campaign, Decided(place=Place(0, "plan"), decision=odd))
        moments = transcribe(store.events(campaign)).steps[Place(0, "plan")].moments
    assert moments == [Decided(place=Place(0, "plan"), decision=odd)]
