"""What metrics are, in words: each that is collected has some, and a page tells them."""

from __future__ import annotations

import pytest

from kernelwright.traces.metric_words import (
    LEVELS,
    STALL,
    counter_words,
    define,
    figure_words,
    stall_words,
    unit_of,
)
from kernelwright.traces.records import MODELLED_US, Level, Metric, Profile
from kernelwright.traces.view.render import environment
from kernelwright.verifier.profile.metrics import STALLS, load_packaged

MOST_WORDS = 20


def collected() -> set[str]:
    """Every name of the catalogue, on whatever device."""
    known = load_packaged()
    found = {name for names in known.sets.values() for name in names} | set(known.static)
    found |= {name for names in known.renamed.values() for name in names.values()}
    for choice in (known.judge, *known.judge_on.values()):
        found |= {name for names in choice.values() for name in names}
    return found - {STALLS}


def test_every_metric_that_is_collected_is_defined() -> None:
    assert sorted(name for name in collected() if not define(name)) == []
    reasons = {reason for names in load_packaged().stall_reasons.values() for reason in names}
    assert reasons <= set(stall_words())


def test_no_counter_is_defined_that_nobody_collects() -> None:
    assert set(counter_words()) <= collected()
    assert not set(counter_words()) & set(figure_words())


@pytest.mark.parametrize("words", [*counter_words().values(), *LEVELS.values()])
def test_a_definition_is_a_short_line(words: str) -> None:
    assert 0 < len(words.split()) <= MOST_WORDS
    assert "\n" not in words


def test_names_are_looked_up_as_profiles_write_them() -> None:
    assert define("latency_us") == figure_words()["latency_us"]
    assert define("traffic:B") == figure_words()["traffic:"]
    assert define(f"{STALL}barrier").endswith(stall_words()["barrier"])
    name = "smsp__warp_issue_stalled_barrier_per_warp_active.pct"
    assert define(name).endswith(stall_words()["barrier"])
    assert define("riddle") == ""


def test_a_unit_is_told_where_only_the_name_has_it() -> None:
    assert unit_of(Metric(name=MODELLED_US, value=1.0)) == "µs"
    assert unit_of(Metric(name="x_us", value=1.0, unit="us")) == "us"
    assert unit_of(Metric(name="waves", value=1.0)) == ""


def test_a_page_tells_each_metric_and_each_level_that_is_there_once() -> None:
    assert set(LEVELS) == set(Level)
    metrics = (
        Metric(name="registers", value=40.0),
        Metric(name="occupancy", value=0.5),
        Metric(name=MODELLED_US, value=3.0, level=Level.MODELLED),
        Metric(name="riddle", value=1.0, level=Level.MODELLED),
    )
    page = environment().get_template("macros.html").module.profile(Profile(metrics=metrics))
    text = str(page).replace("&#39;", "'")
    for metric in metrics:
        assert f'<th scope="row" abbr="{metric.name}">{metric.name}' in text
        assert define(metric.name) in text
    assert text.count(LEVELS[Level.STATIC]) == text.count(LEVELS[Level.MODELLED]) == 1
    assert LEVELS[Level.MEASURED] not in text
    assert '<td class="n nowrap">3 µs</td>' in text
