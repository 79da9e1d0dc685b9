"""A5, B6, S12: replies as models write them, each with its expected outcome."""

from __future__ import annotations

import pytest

from kernelwright.agents.model import Finish
from kernelwright.agents.text import FoundSource, Unusable, extract
from kernelwright.sandbox.source_text import SOURCE_BYTES
from kernelwright.tests.agents.text.corpus import CASES, SOURCES, Case

EXPECTED = {"source", "text", "starts", "outcome", "says"}


def test_a5_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.expected
        assert set(case.expected) <= EXPECTED, case.name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a5_every_reply_has_its_outcome(case: Case) -> None:
    result, expected = case.result(), case.expected
    if "outcome" in expected:
        assert isinstance(result, Unusable), result
        assert result.outcome == expected["outcome"], result.reason
        assert expected.get("says", "") in result.reason
        return
    assert isinstance(result, FoundSource), result
    if "source" in expected:
        assert result.source == SOURCES[expected["source"]]
    elif "text" in expected:
        assert result.source == expected["text"]
    else:
        assert result.source.startswith(expected["starts"])
    assert len(result.source.encode()) <= SOURCE_BYTES
    assert "\r" not in result.source


def of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("thoughts in brackets", "thinking left out"),
        ("example before the answer", "1 other blocks passed over"),
        ("no fence, front matter first", "without a fence"),
        ("one block in C++ without front matter", ""),
        ("one edit", "1 edits of the base"),
    ],
)
def test_what_was_taken_for_granted_is_noted(name: str, note: str) -> None:
    case = of("capital letters in the info string" if not note else name)
    result = case.result()
    assert isinstance(result, FoundSource)
    assert (note or "it has no front matter") in result.notes


def test_b6_a_reply_that_ends_early_is_never_a_source() -> None:
    """B6: whatever is whole is cut at every line; what is found is found again only when whole."""
    case = of("example before the answer")
    lines = case.reply.split("\n")
    closing = max(n for n, line in enumerate(lines) if line == "```")
    for end in range(len(lines)):
        result = extract("\n".join(lines[:end]), Finish.STOP, case.language)
        assert isinstance(result, FoundSource) == (end > closing), end
    for finish in (Finish.LENGTH, Finish.REFUSED, Finish.EMPTY):
        assert isinstance(extract(case.reply, finish, case.language), Unusable)
