"""Charts as SVG: whole, placed by their scales, and safe to stand in a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from kernelwright.traces.history import derive
from kernelwright.traces.records import Timing
from kernelwright.traces.store import Store
from kernelwright.traces.view import charts
from kernelwright.traces.view.drawing import draw

SPACE = "{http://www.w3.org/2000/svg}"


def parsed(figure: charts.Figure) -> ElementTree.Element:
    return ElementTree.fromstring(str(draw(figure, "what it shows")))


def figure_of(points: list[tuple[float, float]], **more: Any) -> charts.Figure:
    marker = {"symbol": "circle", "color": "--pass", "size": 8}
    trace = {
        "mode": "markers",
        "name": "a",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "marker": marker,
        **more,
    }
    axis: dict[str, Any] = {"title": {"text": "x"}}
    layout = {
        "height": 300,
        "margin": {"l": 60, "r": 16, "t": 12, "b": 44},
        "xaxis": axis,
        "yaxis": {**axis, "type": "log"},
        "showlegend": False,
    }
    return {"data": [trace], "layout": layout}


def places(root: ElementTree.Element) -> list[tuple[float, float]]:
    found = [path.get("transform", "") for path in root.iter(f"{SPACE}path")]
    moved = [re.fullmatch(r"translate\(([\d.]+) ([\d.]+)\)", each) for each in found]
    return [(float(each[1]), float(each[2])) for each in moved if each]


def test_a_logarithmic_axis_keeps_ratios() -> None:
    (_, first), (_, second), (_, third) = places(parsed(figure_of([(1, 1), (2, 10), (3, 100)])))
    assert first > second > third
    assert first - second == pytest.approx(second - third, abs=0.2)


def test_what_has_no_place_is_left_out() -> None:
    figure = figure_of([(1, 1), (2, 0), (3, 2)])
    figure["data"][0]["y"][2] = None
    assert len(places(parsed(figure))) == 1


def test_one_point_alone_and_none_at_all() -> None:
    assert len(places(parsed(figure_of([(1, 1)])))) == 1
    assert places(parsed(figure_of([]))) == []


def test_points_are_links_that_tell_themselves_and_nothing_breaks_out() -> None:
    hostile = '<b>1</b> &lt;script&gt;alert(1)&lt;/script&gt;<br>x"'
    root = parsed(figure_of([(1, 1)], text=[hostile], customdata=['#c-1"><script>']))
    (title,) = root.iter(f"{SPACE}title")
    assert title.text == '1 <script>alert(1)</script>\nx"'
    (link,) = root.iter(f"{SPACE}a")
    assert link.get("href") == '#c-1"><script>'
    assert not list(root.iter(f"{SPACE}script"))


@pytest.mark.parametrize("symbol", sorted({*charts.SYMBOL.values(), "line-ns"}))
def test_every_symbol_is_drawn(symbol: str) -> None:
    figure = figure_of([(1, 1)])
    figure["data"][0]["marker"]["symbol"] = symbol
    assert len(places(parsed(figure))) == 1


def test_the_charts_of_a_campaign(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        history = derive(store.events(sample.campaign))
        with store.sheet(sample.campaign) as sheet:
            figure = charts.campaign_chart(sheet, lambda candidate: f"#c-{candidate}")
    root = parsed(figure)
    judged = [entry for entry in history.entries.values() if entry.verdict]
    assert len(list(root.iter(f"{SPACE}a"))) == len(judged)
    words = {text.text for text in root.iter(f"{SPACE}text")}
    assert {"candidate", "speed-up (×, log)", "best baseline = 1", "not timed"} <= words
    assert all(0 <= x <= 760 for x, _ in places(root))


def test_samples_of_both_sides(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        history = derive(store.events(sample.campaign))
    assert history.best is not None
    assert history.best.verdict is not None
    measurement = history.best.verdict.measurements[0]
    sides = [measurement.candidate, *measurement.baselines.values()]
    root = parsed(charts.timing_chart(measurement))
    assert len(places(root)) == sum(_shown(side) for side in sides)


def _shown(timing: Timing) -> int:
    return len(timing.samples_us or (0,)) + 1


def test_a_line_that_has_not_begun_is_no_error() -> None:
    """Of a campaign without a champion there is what was spent, and nothing that it bought."""
    figure = figure_of([(1, 1)], text=["all"], customdata=[None])
    figure["data"][0]["y"] = []
    assert places(parsed(figure)) == []
