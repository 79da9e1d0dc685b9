"""The viewer in a real browser, over the real server: charts, themes, keys, the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store

pytestmark = pytest.mark.browser


def wait_for_charts(page: Any) -> None:
    for chart in page.locator(".chart:visible").all():
        chart.locator(".main-svg").first.wait_for()


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]


PAGES = ("", "/why", "/tree", "/@best", "/search?q=step", "/archive")
"""Of one campaign."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_in_both_themes(
    address: str, sample: Any, open_page: Callable[..., Any], scheme: str
) -> None:
    page = open_page(address, color_scheme=scheme)
    assert violations(page) == []
    for rest in (*PAGES, "/5", "/17"):
        page.goto(f"{address}/c/{sample.campaign}{rest}")
        wait_for_charts(page)
        assert violations(page) == []


def test_the_chart_draws_each_candidate_and_leads_to_it(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}", viewport={"width": 1300, "height": 900})
    wait_for_charts(page)
    assert page.locator(".scatterlayer path.point").count() == 16
    assert page.locator(".scatterlayer path.js-line").count() >= 1
    box = page.locator(".scatterlayer path.point").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator(".hovertext").first.wait_for()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/c/{sample.campaign}/*")
    assert page.title().startswith("#")


def test_the_keyboard_leads_from_the_list_to_the_best_and_its_parent(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(address)
    for link, expected in (
        (f"a[href='/c/{sample.campaign}']", f"**/c/{sample.campaign}"),
        ("tr.best td a", f"**/{sample.champion}"),
        (".steps a:has-text('parent')", f"**/{sample.candidates[6]}"),
    ):
        page.locator(link).first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(expected)
    assert page.locator("h1").inner_text().startswith("Candidate #7")


def test_ticked_candidates_are_compared(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}")
    for number in (2, 7):
        page.get_by_label(f"compare #{number}", exact=True).check()
    page.get_by_role("button", name="Compare those ticked").click()
    page.wait_for_url("**/compare?of=*")
    wait_for_charts(page)
    assert page.locator("h1").inner_text().startswith("2 candidates")
    assert violations(page) == []


def test_hostile_words_stay_words(address: str, sample: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(f"{address}/c/{sample.campaign}/5")
    assert page.title().startswith("#5")
    assert sample.hostile in page.get_by_role("region", name="Log of candidate 5").inner_text()
    assert page.locator("main img").count() == 0


@pytest.mark.slow
def test_a_narrow_screen_does_not_scroll_sideways(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    for rest in (
        "/",
        *(f"/c/{sample.campaign}{of}" for of in PAGES),
        "/compare?of=@last/1&of=@last/7",
    ):
        page = open_page(address + rest, viewport={"width": 360, "height": 800})
        wait_for_charts(page)
        too_wide = page.evaluate(
            "document.documentElement.scrollWidth > 360 && [...document.querySelectorAll('main *')]"
            ".filter(e => e.getBoundingClientRect().right > 361 && !e.closest('.scroll'))"
            ".map(e => e.outerHTML.slice(0, 120))"
        )
        assert not too_wide


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_opens_from_a_disk_without_a_network(
    sample: Any, tmp_path: Path, open_page: Callable[..., Any], scheme: str
) -> None:
    path = tmp_path / "report.html"
    with Store.open(sample.home, read_only=True) as store:
        path.write_text(render_report(store, sample.campaign), encoding="utf-8")
    page = open_page(f"file://{path}", color_scheme=scheme, offline=True)
    assert page.locator("main > section .drawing a").count() == 16
    page.locator(f"table a[href='#c-{sample.candidates[3][:10]}']").first.click()
    fold = page.locator(f"#c-{sample.candidates[3][:10]}")
    fold.locator(".chart .drawing").first.wait_for()
    assert fold.evaluate("fold => fold.open")
    assert violations(page) == []


def open_every_fold(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_traces_are_accessible_and_fit_narrow_screens(
    asked_address: str, asked: Any, open_page: Callable[..., Any], scheme: str
) -> None:
    page = open_page(asked_address, color_scheme=scheme, viewport={"width": 360, "height": 800})
    for rest in ("", "/trace", "/calls/4", "/calls/7"):
        page.goto(f"{asked_address}/c/{asked.campaign}{rest}")
        wait_for_charts(page)
        open_every_fold(page)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_hostile_reply_stays_words(
    asked_address: str, asked: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{asked_address}/c/{asked.campaign}/trace")
    open_every_fold(page)
    assert page.title().startswith("Trace of")
    assert page.locator("main img").count() == 0
    box = page.locator("#call-1 .untrusted").last
    assert "I would rather not. </script><script>document.title='owned'" in box.inner_text()


def test_spending_is_drawn_and_leads_to_calls_and_places(
    asked_address: str, asked: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{asked_address}/c/{asked.campaign}")
    wait_for_charts(page)
    assert page.locator("[data-chart=spending] .scatterlayer path.point").count() == 3
    page.locator("#calls a:text-is('3')").click()
    page.wait_for_url("**/calls/3")
    page.locator("a:text-is('in the trace')").click()
    page.wait_for_url("**/trace?at=1%2F0#p-1-0")
    assert page.locator("#p-1-0").is_visible()


@pytest.mark.slow
def test_a_link_in_the_report_opens_a_call_in_its_fold(
    asked: Any, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    path = tmp_path / "report.html"
    with Store.open(asked.home, read_only=True) as store:
        path.write_text(render_report(store, asked.campaign, charts=False), encoding="utf-8")
    page = open_page(f"file://{path}", offline=True)
    page.locator("#calls a[href='#call-4']").click()
    page.wait_for_function("document.getElementById('call-4').open")
    open_every_fold(page)
    assert violations(page) == []
