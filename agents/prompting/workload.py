# SPDX-License-Identifier: Apache-2.0
"""The timed workload as prompts tell it: sizes, the pattern's shape, the work, what bounds it.

Figures come from the referee, before the first candidate; a resumed campaign and a replay tell
those of the first time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...kernelbench.features import SPARSE_FEATURES
from ...kernelbench.locality import LOCALITY_FEATURES, NEAR_ROWS, WINDOW_ROWS, WINDOW_USES
from ...kernelbench.problem import Problem
from ...kernelbench.shapes import find_axes, lint_shapes, word_notes
from ...traces.preparation import Bounds, Preparation
from ..roles import Situation


def workload(situation: Situation, name: str) -> str:
    """A few lines.

    Args:
        name: The workload's name and note; may be empty.
    """
    problem, facts = situation.problem, situation.facts
    values = ", ".join(f"{axis} = {facts[axis]:.0f}" for axis in problem.axes if axis in facts)
    lines = [f"{name}: {values}" if name else values]
    lines += [*_pattern(facts), *_work(problem, facts), *_tell_wasted(situation)]
    lines += _tell_known(situation.prepared)
    return "\n".join(lines)


def _pattern(facts: Mapping[str, float]) -> Iterator[str]:
    rows = [f"{f} = {facts[f]:.4g}" for f in SPARSE_FEATURES if f in facts]
    if rows:
        yield f"Rows of the pattern: {', '.join(rows)} (entries per row, cv = deviation / mean)."
    if not all(name in facts for name in LOCALITY_FEATURES):
        return
    yield (
        f"Half of the rows have at most {facts['row_p50']:.4g} entries, nine of ten "
        f"{facts['row_p90']:.4g}, 99 of 100 {facts['row_p99']:.4g}. Columns: half of the entries "
        f"lie further from the diagonal than {facts['column_reach']:.0%} of the columns, a column "
        f"in use has {facts['column_uses']:.3g} entries, and of {NEAR_ROWS} rows in a row "
        f"{facts['near_reuse']:.0%} of the entries name a column that another has named before."
    )
    if WINDOW_USES in facts:
        entries = f"{facts[WINDOW_USES]:.3g} entries"
        yield f"Of a window of {WINDOW_ROWS} rows a column in use has {entries}."


def _work(problem: Problem, facts: Mapping[str, float]) -> Iterator[str]:
    axes = find_axes(problem, facts)
    if axes is None:
        return
    flops, moved = problem.flops(axes), problem.bytes_moved(axes)
    yield (
        f"Work of one call: {flops:.4g} flops; at least {moved:.4g} bytes (each input read "
        f"once, each output written once); {flops / moved:.3g} flops per byte."
    )


def _tell_wasted(situation: Situation) -> Iterator[str]:
    problem, facts = situation.problem, situation.facts
    axes = find_axes(problem, facts)
    if axes is None:
        return
    wide = int(facts.get("vector_bytes", 32))
    notes = lint_shapes(problem, axes, situation.target, vector_bytes=wide)
    if notes:
        yield f"What these sizes waste by themselves (modelled): {word_notes(notes)}."


def _tell_known(prepared: Preparation | None) -> Iterator[str]:
    if prepared is None:
        return
    if prepared.bounds is not None:
        yield from _bounds(prepared.bounds)
    if prepared.baseline_us:
        told = ", ".join(f"{name} {us:.4g} us" for name, us in prepared.baseline_us.items())
        yield f"The baselines take, by a few calls before the first candidate: {told}."


def _bounds(bounds: Bounds) -> Iterator[str]:
    how = f"modelled by {bounds.source}" if bounds.is_modelled else bounds.source
    yield f"Floor of a call: {bounds.floor_us:.4g} us ({bounds.roof}; {how})."
    if bounds.gather_us > bounds.floor_us:
        yield (
            f"Fetching a row for each entry ({bounds.gathers}) takes {bounds.gather_us:.4g} us: "
            "only rows that are found again nearer to the cores make a kernel faster than that."
        )
