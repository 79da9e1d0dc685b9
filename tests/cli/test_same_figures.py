"""One campaign in terminal, viewer and report: a figure has the same digits in all."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.tests.cli import stored
from kernelwright.traces.events import ChampionChanged, EvaluationFinished
from kernelwright.traces.records import Check, Depth, Speedup, Status, Timing
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

from .conftest import Command

GAIN = Speedup(median=1.8449, low=1.7951, high=1.8849)
FIGURES = ("1.54 ms", "1.53 ms", "1.55 ms", "2.84 ms", "1.84×", "1.80–1.88", "61.2 %", "0.123")
"""Of the campaign below."""


@pytest.fixture
def campaign(private: dict[str, str]) -> str:
    """With a champion whose figures every room used to round in its own way."""
    home = Path(private["KERNELWRIGHT_HOME"])
    campaign = stored.fill(home, has_winner=False)
    timed = stored.measurement().model_copy(
        update={
            "candidate": Timing(median_us=1540.4, low_us=1529.6, high_us=1549.9),
            "baselines": {"scipy": Timing(median_us=2841.0, low_us=2836.0, high_us=2844.0)},
            "speedup": {"scipy": GAIN},
            "roofline": 0.61234,
        }
    )
    checks = (Check(name="G1 condition-scaled error", passed=True, figure=0.12345, limit=1.0),)
    found = stored.verdict(2, Status.VERIFIED, Depth.CONFIRM)
    with Store.open(home) as store:
        verdict = found.model_copy(update={"measurements": (timed,), "checks": checks})
        store.append(campaign, EvaluationFinished(verdict=verdict))
        store.append(campaign, ChampionChanged(candidate=stored.IDS[1], credited=GAIN.low))
    return campaign


def figures(text: str) -> set[str]:
    """What is worded as a time, a ratio, an interval, a share or a check's figure."""
    # A chart's data and the record itself are no wording.
    for part in ("script", "pre"):
        text = re.sub(rf"<{part}\b.*?</{part}>", " ", text, flags=re.DOTALL)
    plain = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
    number = r"(?<![\w.])\d[\d.,]*"
    forms = rf"{number} (?:µs|ms|%)(?!\w)|{number}×|\d\.\d+–\d\.\d+|(?<![\d$.])0\.\d{{3,}}(?!\d)"
    return set(re.findall(forms, plain))


def odd(found: set[str]) -> set[str]:
    """Spellings of the champion's figures other than ours."""
    digits = ("15", "2.8", "28", "1.8", "1.7", "61", "0.12")
    return {each for each in found if each.startswith(digits)} - {*FIGURES, "1.80×"}


def test_every_room_shows_the_same_digits(
    kw_here: Command, campaign: str, private: dict[str, str]
) -> None:
    client = TestClient(
        create_app(Path(private["KERNELWRIGHT_HOME"])), base_url="http://127.0.0.1:8765"
    )
    rooms = {
        "terminal": kw_here("show", f"{campaign}/2").out,
        "page": client.get(f"/c/{campaign}/2").text,
        "report": kw_here("report", campaign, "-o", "-").out,
    }
    for name, text in rooms.items():
        assert set(FIGURES) <= figures(text), name
        assert odd(figures(text)) == set(), name


def test_summaries_show_the_same_digits(
    kw_here: Command, campaign: str, private: dict[str, str]
) -> None:
    client = TestClient(
        create_app(Path(private["KERNELWRIGHT_HOME"])), base_url="http://127.0.0.1:8765"
    )
    rooms = {
        "show": (kw_here("show", campaign).out, {"1.54 ms", "1.84×", "1.80–1.88"}),
        "list": (kw_here("list").out, {"1.84×"}),
        "campaigns": (client.get("/").text, {"1.80×"}),
        "campaign": (client.get(f"/c/{campaign}").text, {"1.54 ms", "1.84×", "1.80×", "1.80–1.88"}),
    }
    for name, (text, wanted) in rooms.items():
        assert wanted <= figures(text), name
        assert odd(figures(text)) == set(), name
