"""The viewer over its real server, and a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .serving import serving

WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("KERNELWRIGHT_CHROMIUM", "/usr/bin/chromium")
    if not Path(path).exists():
        pytest.skip(f"there is no Chromium at {path}; KERNELWRIGHT_CHROMIUM names another")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def address(sample: Any) -> Iterator[str]:
    """The viewer of the sample, served on a free port."""
    with serving(sample.home) as address:
        yield address


@pytest.fixture
def asked_address(asked: Any) -> Iterator[str]:
    """The viewer of the campaign that asked models."""
    with serving(asked.home) as address:
        yield address


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages; at the end none may have said anything or asked anybody else."""
    contexts: list[Any] = []
    said: list[str] = []
    asked: list[str] = []

    def go(address: str, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []
    own = ("http://127.0.0.1:", "file:", "data:", "blob:")
    assert [url for url in asked if not url.startswith(own)] == []
