"""Pages that are open move as their campaign does, in a real browser and over real HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from kernelwright.traces.events import CandidateProposed
from kernelwright.traces.store import Store
from kernelwright.traces.view import live

from .serving import serving

WAIT_S = 20


def propose(home: Any, campaign: str, *numbers: int) -> None:
    with Store.open(home) as store:
        for number in numbers:
            proposal = CandidateProposed(
                candidate=f"{number:064x}", number=number, language="cpp", family="f", operator="o"
            )
            store.append(campaign, proposal)


def news(reply: httpx.Response) -> Iterator[tuple[int, dict[str, Any]]]:
    """What a stream tells: the id of each word and what it says."""
    seq = 0
    for line in reply.iter_lines():
        if line.startswith("id: "):
            seq = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            yield seq, json.loads(line.removeprefix("data: "))


def test_a_stream_tells_what_there_is_and_then_what_is_recorded(address: str, sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        newest = store.last_seq(sample.campaign)
    for path in ("/api/live", f"/api/c/{sample.campaign}/live", "/api/c/@last/live"):
        with httpx.stream("GET", address + path, timeout=WAIT_S) as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert "content-encoding" not in reply.headers
            told = news(reply)
            seq, first = next(told)
            assert (seq, first["seq"]) == (newest, newest)
            propose(sample.home, sample.campaign, newest + 1)
            seq, second = next(told)
            assert second["seq"] == seq > newest
            newest = seq


def test_that_a_campaign_runs_or_was_killed_is_told_without_an_event(
    address: str, sample: Any
) -> None:
    path = f"{address}/api/c/{sample.campaign}/live"
    with httpx.stream("GET", path, timeout=WAIT_S) as reply:
        told = news(reply)
        assert next(told)[1]["running"] is False
        with Store.open(sample.home) as store, store.lease(sample.campaign):
            assert next(told)[1]["running"] is True
        assert next(told)[1]["running"] is False


def test_nobody_listens_to_what_is_not_there(address: str) -> None:
    reply = httpx.get(f"{address}/api/c/nothing/live", timeout=WAIT_S)
    assert reply.status_code == 404
    assert "nothing" in reply.json()["error"]
    foreign = httpx.get(f"{address}/api/live", headers={"Origin": "https://elsewhere.example"})
    assert foreign.status_code == 403


def test_the_server_ends_while_pages_listen(sample: Any) -> None:
    with httpx.Client(timeout=WAIT_S) as client:
        with serving(sample.home) as address:
            reply = client.send(client.build_request("GET", f"{address}/api/live"), stream=True)
            next(news(reply))
            begun = time.monotonic()
        assert time.monotonic() - begun < WAIT_S
        reply.close()


@pytest.mark.browser
def test_a_page_moves_and_the_reader_stays_where_he_is(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}", viewport={"width": 1280, "height": 700})
    page.locator(".main-svg").first.wait_for()
    points = page.locator(".scatterlayer path.point").count()
    page.locator("#status").select_option(index=1)
    chosen = page.locator("#status").input_value()
    cell = page.locator("#candidates tbody tr").nth(3).locator("td").nth(7)
    cell.evaluate("cell => getSelection().selectAllChildren(cell)")
    selected = page.evaluate("getSelection().toString()")
    page.evaluate("scrollTo(0, 400)")
    page.evaluate("window.isTheSame = true")
    propose(sample.home, sample.campaign, 19, 20)
    page.locator("a:text-is('#20')").wait_for()
    assert page.evaluate("window.isTheSame")
    assert page.evaluate("scrollY") == 400
    assert page.evaluate("getSelection().toString()") == selected != ""
    assert page.locator("#status").input_value() == chosen != ""
    assert page.locator(".scatterlayer path.point").count() >= points
    assert page.locator(".filter .sub").first.inner_text() == "20 of 20 candidates"


@pytest.mark.browser
def test_what_was_opened_stays_open(asked: Any, open_page: Callable[..., Any]) -> None:
    with serving(asked.home) as address:
        page = open_page(f"{address}/c/{asked.campaign}/trace")
        page.locator("details.call summary").first.click()
        assert page.locator("details.call[open]").count() == 1
        before = page.evaluate("document.title")
        with Store.open(asked.home) as store:
            seq = store.last_seq(asked.campaign)
        propose(asked.home, asked.campaign, 99)
        page.locator(".fresh").wait_for(state="attached")
        page.wait_for_function(
            'async seq => (await (await fetch(location.href)).text()).includes(`data-seq="${seq}`)',
            arg=seq + 1,
        )
        page.wait_for_timeout(1500)
        assert page.locator("details.call[open]").count() == 1
        assert page.evaluate("document.title") == before
        page.goto("about:blank")


@pytest.mark.browser
def test_the_list_of_campaigns_moves_too(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(address)
    with Store.open(sample.home) as store, store.lease(sample.campaign):
        propose(sample.home, sample.campaign, 19)
        page.locator(f"tr[data-key='{sample.campaign}']:has-text('running')").wait_for()


@pytest.mark.browser
def test_a_lost_connection_is_told_and_goes_on(browser: Any, sample: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    with serving(sample.home) as address:
        page.goto(f"{address}/c/{sample.campaign}")
        port = int(address.rpartition(":")[2])
        page.locator(".fresh[data-state='idle']").wait_for(state="attached")
    page.locator(".fresh:text-is('connection lost, trying again')").wait_for()
    propose(sample.home, sample.campaign, 19, 20)
    with serving(sample.home, port):
        page.locator("a:text-is('#20')").wait_for()
        page.locator(".fresh[data-state='idle']").wait_for(state="attached")
        assert page.locator(".fresh").inner_text() == ""
        context.close()


@pytest.mark.browser
def test_a_page_that_nobody_sees_has_no_connection(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}")
    page.locator(".fresh[data-state='idle']").wait_for(state="attached")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden });"
        "window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'));"
    )
    propose(sample.home, sample.campaign, 19)
    page.wait_for_timeout(1500)
    assert page.locator("a:text-is('#19')").count() == 0
    page.evaluate("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'));")
    page.locator("a:text-is('#19')").wait_for()


def test_nobody_looks_for_a_page_that_is_closed(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    real = live.look

    def count(reader: Any, campaign: str) -> live.News:
        looks.append(campaign)
        return real(reader, campaign)

    monkeypatch.setattr(live, "look", count)
    with httpx.stream("GET", f"{address}/api/live", timeout=WAIT_S) as reply:
        next(news(reply))
    until = time.monotonic() + WAIT_S
    while True:
        before = len(looks)
        time.sleep(4 * live.LOOK_S)
        if len(looks) == before:
            break
        assert time.monotonic() < until


def test_hidden_columns_stay_hidden_as_rows_come(
    sample: Any, address: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("knobs", exact=True).uncheck()
    propose(sample.home, sample.campaign, 19, 20)
    page.locator("a:text-is('#20')").wait_for()
    assert page.locator("#candidates td.knobs:visible").count() == 0
    assert page.locator("details.choice").count() == 1
    assert not page.get_by_label("knobs", exact=True).is_checked()
