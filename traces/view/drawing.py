# SPDX-License-Identifier: Apache-2.0
"""Figures of charts.py as SVG that stands in a page by itself: without a script, a few kilobytes.

It draws what our figures have and nothing else: points with intervals, lines and steps, one axis of
x and one or two of y, linear or logarithmic. Points are links and tell themselves on hovering;
colours are CSS tokens, so that a drawing follows the theme.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from .charts import Figure

WIDTH = 760
LEGEND_LINE, LEGEND_WIDTH = 18, 170
TICKS = 6
_PADDED = 0.05
"""Of an axis's length, beyond its first and last point."""
_SHAPES = {
    "circle": "M-{r},0a{r},{r} 0 1 0 {d},0a{r},{r} 0 1 0 -{d},0z",
    "diamond": "M0,-{r}L{r},0L0,{r}L-{r},0z",
    "square": "M-{r},-{r}h{d}v{d}h-{d}z",
    "triangle-up": "M0,-{r}L{r},{r}H-{r}z",
    "triangle-down": "M0,{r}L{r},-{r}H-{r}z",
    "x": "M-{r},-{r}L{r},{r}M-{r},{r}L{r},-{r}",
    "cross": "M-{r},0H{r}M0,-{r}V{r}",
    "star": "M-{r},0H{r}M0,-{r}V{r}M-{h},-{h}L{h},{h}M-{h},{h}L{h},-{h}",
    "line-ns": "M0,-{r}V{r}",
}
_STROKED = ("x", "cross", "star", "line-ns")


@dataclass(frozen=True)
class _Scale:
    """From values to pixels along one axis."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool

    def at(self, value: float) -> float:
        """The pixel of a value."""
        low, high, here = (self._flat(each) for each in (self.low, self.high, value))
        share = (here - low) / (high - low) if high > low else 0.5
        return self.first + share * (self.last - self.first)

    def holds(self, value: float | None) -> bool:
        """Whether a value is there and can be shown."""
        return value is not None and math.isfinite(value) and (value > 0 or not self.is_log)

    def _flat(self, value: float) -> float:
        return math.log10(value) if self.is_log else value


def draw(figure: Figure, label: str = "") -> Markup:
    """One figure as an <svg> element.

    Args:
        label: what it shows, for who cannot see it.
    """
    layout, data = figure["layout"], figure["data"]
    named = [t for t in data if t.get("name")] if layout.get("showlegend", True) else []
    per_line = WIDTH // LEGEND_WIDTH
    head = LEGEND_LINE * math.ceil(len(named) / per_line)
    margin = layout["margin"]
    height = layout["height"] + head
    top, bottom = margin["t"] + head, height - margin["b"]
    left, right = _left_of(layout, margin), WIDTH - margin["r"]
    x = _scale(layout["xaxis"], _values(data, "x"), left, right)
    parts = [*_legend(named, per_line), *_x_axis(layout["xaxis"], x, top, bottom)]
    scales: dict[str, _Scale] = {}
    for key, name in (("yaxis", "y"), ("yaxis2", "y2")):
        if axis := layout.get(key):
            first, last = axis.get("domain", (0, 1))
            ends = (bottom - first * (bottom - top), bottom - last * (bottom - top))
            scales[name] = _scale(axis, _values(data, "y", name), *ends)
            parts += _y_axis(axis, scales[name], left, right)
    parts += _lines_across(layout, scales["y"], left, right)
    for trace in data:
        parts += _trace(trace, x, scales[trace.get("yaxis", "y")])
    # A picture whose points are links is a group of these.
    told = f' role="group" aria-label="{escape(label)}"' if label else ""
    inside = "".join(parts)
    return Markup(
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {height}" '
        f'xmlns="http://www.w3.org/2000/svg"{told}>{inside}</svg>'
    )


def _left_of(layout: Figure, margin: Figure) -> float:
    """Where the drawing begins: words at ticks need room."""
    words = [
        word for key in ("yaxis", "yaxis2") for word in layout.get(key, {}).get("ticktext", ())
    ]
    return max(float(margin["l"]), 20 + 6.4 * max(map(len, words), default=0))


def _values(data: Iterable[Figure], key: str, axis: str = "") -> list[float]:
    """All that an axis has to show, intervals included."""
    found: list[float] = []
    for trace in data:
        if axis and trace.get("yaxis", "y") != axis:
            continue
        values = trace[key]
        found += [each for each in values if each is not None]
        if key == "y" and (error := trace.get("error_y")):
            found += [v + up for v, up in zip(values, error["array"], strict=True)]
            found += [v - down for v, down in zip(values, error["arrayminus"], strict=True)]
    return found


def _scale(axis: Figure, values: Sequence[float], first: float, last: float) -> _Scale:
    """Of an axis: as it says, else from the values, with room at both ends."""
    is_log = axis.get("type") == "log"
    if "range" in axis:
        low, high = axis["range"]
        return _Scale(low, high, first, last, is_log)
    shown = [each for each in values if not is_log or each > 0] or [1.0]
    shown += [each for each in axis.get("tickvals", ()) if is_log]
    low, high = min(shown), max(shown)
    if axis.get("rangemode") == "tozero":
        low = min(low, 0.0)
    if is_log:
        ratio = max((high / low) ** _PADDED, 1.08)
        return _Scale(low / ratio, high * ratio, first, last, is_log)
    room = (high - low) * _PADDED or 1.0
    return _Scale(low if low == 0 else low - room, high + room, first, last, is_log)


def _ticks(axis: Figure, scale: _Scale) -> list[tuple[float, str]]:
    """Values with their words."""
    if "tickvals" in axis:
        return list(zip(axis["tickvals"], axis["ticktext"], strict=True))
    if scale.is_log:
        decades = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
        steps = (1, 2, 5) if len(decades) < 4 else (1,)
        values = [step * 10.0**decade for decade in decades for step in steps]
    else:
        step = axis.get("dtick") or _step((scale.high - scale.low) / TICKS)
        values = [
            step * number
            for number in range(math.ceil(scale.low / step), math.floor(scale.high / step) + 1)
        ]
    if axis.get("tickformat") == "d":
        values = [value for value in values if value == round(value)]
    return [(value, f"{value:,.6g}") for value in values if scale.low <= value <= scale.high]


def _step(least: float) -> float:
    """The next number above of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def _x_axis(axis: Figure, scale: _Scale, top: float, bottom: float) -> Iterator[str]:
    for value, word in _ticks(axis, scale):
        at = scale.at(value)
        yield _line(at, top, at, bottom, "grid")
        yield _text(at, bottom + 16, word, "middle")
    yield _line(scale.first, bottom, scale.last, bottom, "line")
    yield _text((scale.first + scale.last) / 2, bottom + 36, axis["title"]["text"], "middle")


def _y_axis(axis: Figure, scale: _Scale, left: float, right: float) -> Iterator[str]:
    for value, word in _ticks(axis, scale):
        at = scale.at(value)
        if axis.get("showgrid", True):
            yield _line(left, at, right, at, "grid")
        yield _text(left - 6, at + 4, html.unescape(word), "end")
    yield _line(left, scale.first, left, scale.last, "line")
    if title := axis["title"]["text"]:
        middle = (scale.first + scale.last) / 2
        yield _text(12, middle, title, "middle", f' transform="rotate(-90 12 {middle:.1f})"')


def _lines_across(layout: Figure, scale: _Scale, left: float, right: float) -> Iterator[str]:
    """The line of the best baseline, and its name."""
    for shape in layout.get("shapes", ()):
        at = scale.at(shape["y0"])
        yield _line(left, at, right, at, "muted", ' stroke-dasharray="5 4"')
    for note, shape in zip(layout.get("annotations", ()), layout.get("shapes", ()), strict=True):
        yield _text(right - 4, scale.at(shape["y0"]) - 4, note["text"], "end")


def _trace(trace: Figure, x: _Scale, y: _Scale) -> Iterator[str]:
    """Its line, then its intervals and points."""
    places = [
        (x.at(across), y.at(up), number)
        for number, (across, up) in enumerate(zip(trace["x"], trace["y"], strict=False))
        if x.holds(across) and y.holds(up)
    ]
    if "lines" in trace["mode"] and places:
        path = f"M{places[0][0]:.1f},{places[0][1]:.1f}"
        path += "".join(f"H{across:.1f}V{up:.1f}" for across, up, _ in places[1:])
        line = trace["line"]
        width = line.get("width", 1)
        drawn = f'stroke="{_colour(line["color"])}" stroke-width="{width}"'
        yield f'<path d="{path}" fill="none" {drawn}/>'
    if "markers" in trace["mode"]:
        for across, up, number in places:
            yield _point(trace, number, across, up, y)


def _point(trace: Figure, number: int, across: float, up: float, y: _Scale) -> str:
    marker = trace["marker"]
    size = marker["size"]
    radius = (size[number] if isinstance(size, list) else size) / 2
    symbol = marker.get("symbol", "circle")
    shape = symbol.removesuffix("-open")
    path = _SHAPES[shape].format(r=f"{radius:g}", d=f"{2 * radius:g}", h=f"{0.7 * radius:.2g}")
    is_filled = shape == symbol and shape not in _STROKED
    colour = _colour(marker["color"])
    inside = colour if is_filled else "none"
    width = marker.get("line", {}).get("width", 1)
    drawn = (
        f'<path d="{path}" transform="translate({across:.1f} {up:.1f})" fill="{inside}" '
        f'stroke="{colour}" stroke-width="{width}" opacity="{marker.get("opacity", 1)}"/>'
    )
    if error := trace.get("error_y"):
        value = trace["y"][number]
        ends = (value - error["arrayminus"][number], value + error["array"][number])
        low, high = (
            (y.at(end) for end in ends if y.holds(end)) if all(map(y.holds, ends)) else (up, up)
        )
        drawn = f'<path d="M{across:.1f},{low:.1f}V{high:.1f}" stroke="{colour}"/>' + drawn
    words = _strip_tags(trace["text"][number]) if trace.get("text") else ""
    if words:
        drawn = f"<g><title>{escape(words)}</title>{drawn}</g>"
    link = (trace.get("customdata") or [None] * (number + 1))[number]
    named = f'href="{escape(link)}" aria-label="{escape(words)}"'
    return f"<a {named}>{drawn}</a>" if link else drawn


def _legend(named: Sequence[Figure], per_line: int) -> Iterator[str]:
    for number, trace in enumerate(named):
        across = 60 + LEGEND_WIDTH * (number % per_line)
        up = 12 + LEGEND_LINE * (number // per_line)
        if "lines" in trace["mode"]:
            colour = _colour(trace["line"]["color"])
            yield f'<path d="M{across - 8},{up - 4}h14" stroke="{colour}" stroke-width="2"/>'
        else:
            marked: dict[str, Any] = {"marker": {**trace["marker"], "size": 9}, "y": [0]}
            yield _point(marked, 0, across, up - 4, _Scale(0, 1, 0, 1, is_log=False))
        yield _text(across + 10, up, html.unescape(trace["name"]), "start")


def _strip_tags(text: str) -> str:
    """Of the little HTML that Plotly reads."""
    return html.unescape(re.sub(r"</?b>", "", text.replace("<br>", "\n")))


def _colour(token: str) -> str:
    return f"var({token})" if token.startswith("--") else token


def _line(x: float, y: float, to_x: float, to_y: float, token: str, more: str = "") -> str:
    return (
        f'<path d="M{x:.1f},{y:.1f}L{to_x:.1f},{to_y:.1f}" stroke="var(--{token})" fill="none"'
        f"{more}/>"
    )


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
