"""Places: what was written is read back, and every part means one thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.tests.agents.recorded.file import content
from kernelwright.traces.decisions import Cut
from kernelwright.traces.events import Decided
from kernelwright.traces.place import NOWHERE, Place, in_round

RECORDED = Path(__file__).parents[1] / "agents" / "recorded" / "campaigns"

WORDS = st.text("abcdefghijk lmno", min_size=1, max_size=12)
NUMBERS = st.integers(0, 10**8)


@st.composite
def places(draw: st.DrawFn) -> Place:
    number = draw(st.none() | NUMBERS)
    slot = draw(st.none() | WORDS if number is None else st.none() | WORDS | NUMBERS)
    purpose = draw(st.just("") | WORDS)
    turn = draw(st.none() | NUMBERS) if purpose else None
    vote = draw(st.none() | NUMBERS) if turn is not None else None
    return Place(number, slot, purpose, turn, vote)


def told(recorded: Any) -> Iterator[str]:
    """Every place in a recorded campaign."""
    if isinstance(recorded, dict):
        yield from (v for k, v in recorded.items() if k == "place")
    if isinstance(recorded, dict | list):
        for each in recorded.values() if isinstance(recorded, dict) else recorded:
            yield from told(each)


@given(places())
def test_a_place_is_read_as_it_was_written(place: Place) -> None:
    assert Place.parse(str(place)) == place


@given(st.text("0123456789/ abc", max_size=20) | st.text(max_size=20))
def test_any_text_is_kept(text: str) -> None:
    assert str(Place.parse(text)) == text


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.json.gz")), ids=lambda file: file.stem)
def test_the_places_of_recorded_campaigns_are_of_rounds(file: Path) -> None:
    found = {*told(content(file))}
    assert found
    for text in found:
        place = Place.parse(text)
        assert str(place) == text
        assert place.is_slot
        assert (place.turn is None) == (place == place.step)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", NOWHERE),
        ("3", Place(3)),
        ("3/1", Place(3, 1)),
        ("3/plan", Place(3, "plan")),
        ("3/1/judge optimise/1", Place(3, 1, "judge optimise", 1)),
        ("3/1/soft build/2/0", Place(3, 1, "soft build", turn=0, vote=2)),
        ("3/lessons/reflect/0", Place(3, "lessons", "reflect", 0)),
        ("source", Place(slot="source")),
        ("candidate 4/judge repair/0", Place(None, "candidate 4", "judge repair", 0)),
        ("03/1/x/y", Place(slot="03/1/x/y")),
    ],
)
def test_what_the_parts_are(text: str, place: Place) -> None:
    assert Place.parse(text) == place
    assert str(place) == text


def test_what_is_of_the_whole_campaign_is_of_no_round() -> None:
    whole = Place(slot="source")
    assert not whole.is_before(0)
    assert not whole.is_before(10**9)
    assert not whole.is_since(0)
    with pytest.raises(ValueError, match="no place of a proposal"):
        _ = whole.numbers
    with pytest.raises(ValueError, match="of no round"):
        Place(None, 3)


def test_what_a_round_placed_comes_by_slot() -> None:
    placed = {Place(1, 10): "c", Place(1, 9): "b", Place(2, 0): "x", Place(1, "plan"): "y"}
    assert in_round(1, placed.items()) == ["b", "c"]


def test_a_record_keeps_the_text() -> None:
    decided = Decided(place=Place(3, "plan"), decision=Cut(by="usd"))
    assert decided.model_dump()["place"] == "3/plan"
    assert Decided.model_validate_json(decided.model_dump_json()) == decided
    with pytest.raises(ValueError, match="written as text"):
        Decided.model_validate({"place": 3, "what": "x", "details": {}})
