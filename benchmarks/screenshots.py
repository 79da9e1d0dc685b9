# SPDX-License-Identifier: Apache-2.0
"""Pictures of the viewer from a real campaign, for the documents: `make screenshots`.

python benchmarks/screenshots.py HOME CAMPAIGN
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from kernelwright.tests.traces.view.serving import serving
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

FOLDER = Path(__file__).parents[1] / "docs" / "img"
CHROMIUM = os.environ.get("KERNELWRIGHT_CHROMIUM", "/usr/bin/chromium")
SIZE = {"width": 1280, "height": 860}
COMPARED = 3


def main(home: Path, name: str) -> None:
    """Takes the pictures."""
    with Store.open(home, read_only=True) as store:
        campaign = store.resolve(name)
        history = derive(store.events(campaign))
    best = history.best
    assert best is not None, "the campaign has no winner to show"
    timed = [e for e in history.entries.values() if e.verdict and e.verdict.measurement]
    chosen = [best, *(entry for entry in timed if entry is not best)][:COMPARED]
    compared = "&".join(f"of={campaign}/{entry.number}" for entry in chosen)
    pages = {
        "home": "/",
        "campaign": f"/c/{campaign}",
        "why": f"/c/{campaign}/why",
        "tree": f"/c/{campaign}/tree",
        "candidate": f"/c/{campaign}/{best.number}",
        "compare": f"/compare?{compared}",
    }
    FOLDER.mkdir(exist_ok=True)
    with serving(home) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE).new_page()
        for title, path in pages.items():
            page.goto(address + path)
            for chart in page.locator(".chart:visible").all():
                chart.locator(".main-svg").first.wait_for()
            page.screenshot(path=FOLDER / f"{title}.png")
            print(FOLDER / f"{title}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "@last")
