"""Words are found in sources, claims, prompts and replies, and a search that is cut goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.traces.finding import At, Found, Hit, search
from kernelwright.traces.sheet import Sheet
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app


@pytest.fixture
def opened(asked: Any) -> Iterator[tuple[Store, Sheet]]:
    with Store.open(asked.home, read_only=True) as store, store.sheet(asked.campaign) as sheet:
        yield store, sheet


def words(hit: Hit) -> str:
    return f"{hit.before}{hit.found}{hit.behind}"


def test_code_is_found_with_its_line(opened: tuple[Store, Sheet]) -> None:
    store, sheet = opened
    found = search(store, sheet, "STEP 7 of the sum")
    code = [hit for hit in found.hits if hit.kind == "code"]
    assert {hit.number for hit in code} == {1, 2, 3}
    assert found.is_whole
    for hit in code:
        line = store.get_blob(hit.candidate).decode().splitlines()[hit.line - 1]
        assert "step 7 of the sum" in line
        assert hit.found == "step 7 of the sum"
        assert words(hit) in line


def test_prompts_and_replies_are_found_once_for_each_message(opened: tuple[Store, Sheet]) -> None:
    store, sheet = opened
    system = search(store, sheet, "a rule of the house").hits
    assert [(hit.kind, hit.number) for hit in system if hit.kind == "prompt"] == [("prompt", 1)]
    kinds = {hit.kind for hit in search(store, sheet, "e").hits}
    assert {"claim", "code", "prompt", "reply"} <= kinds


@pytest.mark.parametrize("text", ["", "   ", "there is no such word as qxzzy", "%", "\x00"])
def test_what_is_not_there_is_not_found(text: str, opened: tuple[Store, Sheet]) -> None:
    found = search(*opened, text)
    assert all(text.strip() in words(hit) for hit in found.hits)
    assert not found.hits or text == "%"


def test_a_search_that_was_cut_goes_on_to_the_same_end(opened: tuple[Store, Sheet]) -> None:
    whole = search(*opened, "sum", patience_s=60)
    at, parts = At(), list[Hit]()
    found: Found | None = None
    for _ in range(100):
        found = search(*opened, "sum", at, patience_s=-1)
        assert (found.candidates - at.candidates) + (found.calls - at.calls) == 1
        at = At(found.candidates, found.calls)
        parts += found.hits
        if found.is_whole:
            break
    assert found is not None
    assert found.is_whole
    assert [hit for hit in parts if hit.candidate] == [h for h in whole.hits if h.candidate]
    assert set(whole.hits) <= set(parts)


def test_a_lost_source_is_passed_over(asked: Any) -> None:
    (lost,) = asked.candidates[:1]
    (asked.home / "blobs" / lost[:2] / lost[2:]).unlink()
    with Store.open(asked.home, read_only=True) as store, store.sheet(asked.campaign) as sheet:
        found = search(store, sheet, "step 7 of the sum")
    assert lost not in {hit.candidate for hit in found.hits}
    assert found.is_whole


def test_the_page_escapes_what_it_finds(asked: Any, sample: Any) -> None:
    with TestClient(create_app(sample.home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{sample.campaign}/search", params={"q": "document.title"}).text
        assert "<mark>document.title</mark>" in page
        assert sample.hostile not in page
        odd = client.get(f"/c/{sample.campaign}/search", params={"q": sample.hostile})
        assert sample.hostile not in odd.text
        assert (
            client.get(f"/c/{sample.campaign}/search?candidates=-5&calls=99999").status_code == 200
        )
    with TestClient(create_app(asked.home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{asked.campaign}/search", params={"q": "a rule of the house"}).text
        assert f'href="/c/{asked.campaign}/calls/1"' in page
