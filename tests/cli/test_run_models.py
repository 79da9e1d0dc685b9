"""`run` with models: what it plans, what it pays, and with which code it ends."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn
from kernelwright.traces.events import ModelReplied
from kernelwright.traces.spending import Spending
from kernelwright.traces.store import Store

from .test_end_to_end import SEVEN, Place

pytestmark = pytest.mark.slow

RUN = ("run", "spmm_csr", "--target", "cpu", "--workload", "tiny", "--workflow", "forge")
WRONG, HONEST = ((SEVEN / f"{name}.cpp").read_text() for name in ("wrong", "honest"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Place:
    return Place(tmp_path_factory.mktemp("models"), shared_cache)


def fenced(source: str) -> str:
    return f"Strategy: as told\n```cpp\n{source}```\n"


def script(place: Place, *turns: tuple[str, str]) -> str:
    """The option that plays these turns, each of a purpose."""
    file = place.folder / "script.jsonl"
    lines = [json.dumps({"purpose": purpose, "text": text}) for purpose, text in turns]
    file.write_text("\n".join(lines))
    return f"scripted:{file}"


def test_a_dry_run_prints_the_first_prompt_and_the_most_it_may_cost(place: Place) -> None:
    model = script(place)
    done = place.kw(*RUN, "--model", model, "--max-tokens", "90000", "--dry-run", "--json")
    assert done.code == 0, done.err
    plan = done.document["plan"]
    assert plan["limits"] == {"tokens": 90000.0}
    first = plan["first_call"]
    assert first["calls"] == 20
    assert first["cost_at_most"]["tokens"] == 90000.0
    assert 16_384 < first["bound"]["tokens"] < 90_000
    assert "spmm_csr" in first["messages"][1]["content"]
    assert "at most 90,000 tokens" in done.err
    assert not (place.folder / "home" / "kernelwright.sqlite").exists()


@pytest.mark.heavy
@pytest.mark.timed
def test_a_scripted_chain_repairs_wins_resumes_and_replays(place: Place) -> None:
    faster = HONEST.replace("64)", "32)")
    model = script(
        place, ("write", fenced(WRONG)), ("repair", fenced(HONEST)), ("optimise", fenced(faster))
    )
    done = place.kw(*RUN, "--model", model, "--rounds", "3", "--max-evals", "2", "--json")
    assert done.code == 0, done.err
    first = done.document
    assert (first["stopped_by"], first["evaluated"]) == ("evaluations", 2)
    assert first["best"]["status"] == "VERIFIED"
    assert first["tokens"] > 1000
    assert first["usd"] == 0
    again = place.kw("run", "--resume", first["campaign"], "--max-evals", "9", "--json")
    assert again.code == 0, again.err
    assert (again.document["stopped_by"], again.document["evaluated"]) == ("rounds", 3)
    replayed = place.kw(
        "run", "spmm_csr", "--model", f"replay:{first['campaign']}", "--max-evals", "9", "--json"
    )
    assert replayed.code == 0, replayed.err
    assert replayed.document["best"]["candidate"] == again.document["best"]["candidate"]
    assert replayed.document["by_status"] == again.document["by_status"]
    assert replayed.document["tokens"] == 0


def test_a_cap_without_a_win_ends_with_5(place: Place) -> None:
    model = script(place, ("write", fenced(WRONG)))
    done = place.kw(*RUN, "--model", model, "--max-tokens", "27000", "--json")
    assert done.code == 5, done.err
    assert done.document["stopped_by"] == "tokens"
    assert 0 < done.document["tokens"] <= 27_000


PRICE = """
[[price]]
model = "dear"
input = 1.0
output = 1.25
"""


def test_ten_cents_are_never_passed_and_buy_no_excuse(place: Place) -> None:
    """Each reply is reported at the most that it may cost; none is right."""
    prices = place.folder / "prices.toml"
    prices.write_text(PRICE)
    answered = itertools.count()

    def answer(request: Request) -> Turn:
        # No token is shorter than a character.
        most = request.body.get("max_completion_tokens") or request.body["max_tokens"]
        usage = {"prompt_tokens": len(request.text) // 3, "completion_tokens": most}
        wrong = f"{WRONG}\n// reply {next(answered)}\n"
        return Turn(fenced(wrong), usage=usage | {"total_tokens": sum(usage.values())})

    with Endpoint(answer) as server:
        place.env |= {"OPENAI_BASE_URL": server.url, "KERNELWRIGHT_PRICES_FILE": str(prices)}
        try:
            done = place.kw(*RUN, "--model", "openai/dear", "--max-usd", "0.10", "--json")
        finally:
            del place.env["OPENAI_BASE_URL"], place.env["KERNELWRIGHT_PRICES_FILE"]
        paid = len(server.requests)
    assert done.code == 5, done.err
    document = done.document
    assert (document["stopped_by"], document["best"]) == ("usd", None)
    assert document["by_status"] == {"INCORRECT": paid}
    assert 2 <= paid <= 5
    spending, dearest = Spending(), 0.0
    with Store.open(place.folder / "home") as store:
        events = store.events(document["campaign"])
    for event in events:
        spending.apply(event)
        assert spending.priced_usd + spending.reserved_usd <= 0.10
        if isinstance(event.payload, ModelReplied):
            assert not event.payload.overran
            dearest = max(dearest, event.payload.usd or 0.0)
    assert document["usd"] == pytest.approx(spending.usd, abs=1e-6)
    # It was the cap that ended it: what was left would not have paid for one more reply.
    assert 0.10 - spending.priced_usd < 1.5 * dearest


def test_a_refused_key_ends_with_4_and_the_remedy(place: Place) -> None:
    place.env["OPENAI_API_KEY"] = "sk-planted-0123456789"
    with Endpoint([Turn(status=401), Turn(status=401)]) as server:
        place.env["OPENAI_BASE_URL"] = server.url
        done = place.kw(*RUN, "--model", "openai/any", "--max-tokens", "90000")
        posts = [request for request in server.requests if request.method == "POST"]
    assert done.code == 4, done.err
    assert len(posts) == 1
    assert "key" in done.err
    assert "--resume" in done.err
    assert "sk-planted" not in done.out + done.err


def test_a_cap_in_dollars_needs_a_price(place: Place) -> None:
    place.env["OPENAI_BASE_URL"] = "http://models.invalid/v1"
    done = place.kw(*RUN, "--model", "openai/nobody-knows-it", "--max-usd", "1")
    assert done.code == 2, done.err
    assert "price" in done.err
    assert "--max-tokens" in done.err
