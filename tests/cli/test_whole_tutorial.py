"""docs/tutorial.md, word by word, part by part. A server of ours is the model."""

from __future__ import annotations

from itertools import count, islice
from pathlib import Path

import pytest

from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn
from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.traces.records import Status

from .following import DOCS, Reader, read_section

PAGE = DOCS / "tutorial.md"
KERNELS = 12

pytestmark = [pytest.mark.slow, pytest.mark.timed, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Reader:
    """Has run the first campaign."""
    skip_for_want_of_one(no_jail())
    found = Reader(tmp_path_factory.mktemp("whole"), shared_cache)
    assert follow(found, "A first campaign")
    return found


def follow(reader: Reader, heading: str) -> list[str]:
    return reader.follow(read_section(PAGE, f"## {heading}\n"))


def assert_won(reader: Reader, problem: str) -> None:
    """The last campaign has a verified winner."""
    best = reader.home["@last"].champion
    assert best is not None
    assert best.verdict is not None
    assert (best.verdict.problem, best.status) == (problem, Status.VERIFIED)


def answer_with_kernels() -> Endpoint:
    """A model whose every answer is another right kernel."""
    sources = [
        recipe.render(dict(recipe.first_knobs(), **{knob.name: value}))
        for recipe in recipes_for("softmax")
        for knob in recipe.knobs[:2]
        for value in islice(knob.values, 3)
    ][:KERNELS]
    asked = count()

    def answer(_: Request) -> Turn:
        source = sources[next(asked) % len(sources)]
        return Turn(f"Strategy: loads that overlap\n```cpp\n{source}```\n")

    return Endpoint(answer)


def test_a_first_campaign_has_a_winner(reader: Reader) -> None:
    assert_won(reader, "softmax")


def test_its_trace_is_read(reader: Reader) -> None:
    assert follow(reader, "Read its trace")
    assert reader.home["@last"].id in (reader.folder / "report.html").read_text("utf-8")


@pytest.mark.heavy
def test_its_winner_is_used(reader: Reader) -> None:
    assert follow(reader, "Use the winner")
    assert list((reader.folder / "winner").glob("kw_softmax_*/record.json"))


@pytest.mark.heavy
def test_an_own_operator_has_a_verified_kernel(reader: Reader) -> None:
    assert follow(reader, "Your own operator")
    assert_won(reader, "mine")


@pytest.mark.heavy
def test_an_own_model_is_asked(reader: Reader) -> None:
    with answer_with_kernels() as endpoint:
        reader.elsewhere = {"OPENAI_BASE_URL": endpoint.url}
        assert follow(reader, "Your own model")
        assert {request.body["model"] for request in endpoint.requests} == {"my-model"}
    (asked,) = (each for each in reader.home if each.history.started.model == "openai/my-model")
    assert asked.champion is not None
    assert asked.transcript.calls


def test_no_command_stands_outside_of_what_is_followed() -> None:
    """The other parts of the page have no block to run."""
    page = PAGE.read_text("utf-8")
    followed = ("A first campaign", "Read its trace", "Use the winner", "Your own")
    for part in page.split("\n## ")[1:]:
        assert part.startswith(followed) or "```" not in part
    assert "```" not in page.split("\n## ")[0]
