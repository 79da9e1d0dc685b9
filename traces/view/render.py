# SPDX-License-Identifier: Apache-2.0
"""The template environment: strict, always escaping, with the words as filters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...kernelbench.languages import LANGUAGES
from .. import metric_words, wording
from ..conversation import spell_controls
from ..grouped_checks import group_checks
from . import words
from .charts import MOST_POINTS
from .code import highlight
from .links import anchor
from .trace import facts_of

HERE = Path(__file__).parent
STATIC = HERE / "static"


@cache
def environment() -> Environment:
    """The one environment of pages and reports."""
    env = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("figure", "micros", "ratio", "interval", "percent", "duration", "usd", "tokens"):
        env.filters[name] = getattr(wording, name)
    env.filters["preparing"] = wording.preparing
    env.filters["sharing"] = wording.sharing
    for name in ("gain", "local_time", "utc_time", "sentence", "place"):
        env.filters[name] = getattr(words, name)
    env.filters["short"] = words.shorten_id
    env.filters["grouped"] = group_checks
    env.filters["parted"] = words.word_parts
    env.filters["visible"] = spell_controls
    env.filters["call_facts"] = facts_of
    env.filters["anchor"] = anchor
    env.filters["durations"] = _durations
    env.filters["define"] = metric_words.define
    env.filters["unit"] = metric_words.unit_of
    env.globals.update(
        most_points=MOST_POINTS, meaning=wording.MEANING, sign=words.SIGN, group=words.GROUP
    )
    env.globals["levels"] = metric_words.LEVELS
    return env


def _durations(seconds: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, wording.duration(value)) for name, value in seconds.items()]


def warm() -> None:
    """Reads all templates and what colours sources, so that no reader waits for it."""
    env = environment()
    for name in env.list_templates():
        env.get_template(name)
    for language in LANGUAGES:
        highlight("", language)


def render(template: str, **context: Any) -> str:
    """One page."""
    return environment().get_template(template).render(**context)


@cache
def asset(name: str) -> str:
    """The text of one of our own static files."""
    return (STATIC / name).read_text(encoding="utf-8")


@cache
def plotly_version() -> str:
    """The installed Plotly; a part of the script's address, so that caches cannot be stale."""
    return version("plotly")


def plotly_script() -> Path:
    """The JavaScript that ships inside Plotly's wheel."""
    from importlib.util import find_spec

    from ...errors import PrerequisiteError

    spec = find_spec("plotly")
    origin = spec.origin if spec else None
    path = Path(origin).parent / "package_data" / "plotly.min.js" if origin else None
    if path is None or not path.is_file():
        raise PrerequisiteError(
            "plotly's JavaScript was not found in its package",
            hint="pip install --force-reinstall plotly",
        )
    return path
