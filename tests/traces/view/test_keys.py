"""Keys, the theme and what is copied, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .test_browser import violations, wait_for_charts

pytestmark = pytest.mark.browser


def press(page: Any, key: str) -> None:
    """Presses a key on a page that has been read: before its scripts have run nobody listens."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def test_rows_are_walked_ticked_and_opened(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}")
    wait_for_charts(page)
    for key in "jjk":
        press(page, key)
    assert page.locator("tr.here").count() == 1
    assert page.locator("tr.here a").first.inner_text() == "#1"
    press(page, "c")
    assert page.get_by_label("compare #1", exact=True).is_checked()
    press(page, "j")
    press(page, "Enter")
    page.wait_for_url("**/c/*/*")
    assert page.title().startswith("#2")
    press(page, "j")
    page.wait_for_function("document.title.startsWith('#3')")
    press(page, "k")
    page.wait_for_function("document.title.startsWith('#2')")
    press(page, "b")
    page.wait_for_url(f"**/{sample.champion}")
    press(page, "p")
    page.wait_for_function("document.title.startsWith('#7')")


def test_keys_are_listed_and_words_are_typed_in_peace(
    address: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(address)
    press(page, "?")
    page.locator("dialog[open] kbd").first.wait_for()
    assert violations(page) == []
    press(page, "Escape")
    assert page.locator("dialog[open]").count() == 0
    press(page, "/")
    page.keyboard.type("jkbpc?t")
    assert page.locator("#q").input_value() == "jkbpc?t"
    assert page.locator("#theme").inner_text() == "theme: auto"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_theme_is_chosen_and_kept(
    address: str, sample: Any, open_page: Callable[..., Any], scheme: str
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}", color_scheme=scheme)
    wait_for_charts(page)
    ground = "getComputedStyle(document.body).backgroundColor"
    text = "getComputedStyle(document.querySelector('.main-svg text')).fill"
    seen = {"auto": (page.evaluate(ground), page.evaluate(text))}
    for theme in ("light", "dark"):
        page.locator("#theme").click()
        page.locator(f"#theme:text-is('theme: {theme}')").wait_for()
        page.wait_for_timeout(300)
        seen[theme] = (page.evaluate(ground), page.evaluate(text))
    assert seen["auto"] == seen[scheme]
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]
    page.reload()
    assert page.locator("#theme").inner_text() == "theme: dark"
    assert page.evaluate(ground) == seen["dark"][0]


def test_the_code_is_copied_as_it_is(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(
        f"{address}/c/{sample.campaign}/2", permissions=["clipboard-read", "clipboard-write"]
    )
    page.get_by_role("button", name="Copy the code").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    source = page.evaluate(
        "async address => (await fetch(address)).text()",
        f"/api/c/{sample.campaign}/2/source",
    )
    assert copied.splitlines() == source.splitlines()


def test_columns_are_chosen_and_kept(
    address: str, sample: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(f"{address}/c/{sample.campaign}")
    wait_for_charts(page)
    shown = page.locator("#candidates thead th:visible")
    assert "knobs" in shown.all_inner_texts()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("knobs", exact=True).uncheck()
    assert "knobs" not in shown.all_inner_texts()
    assert page.locator("#candidates td.knobs:visible").count() == 0
    page.reload()
    assert "knobs" not in shown.all_inner_texts()
    assert page.locator("#candidates tbody tr:visible").count() > 0
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("knobs", exact=True).check()
    assert "knobs" in shown.all_inner_texts()
