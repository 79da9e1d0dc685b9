# SPDX-License-Identifier: Apache-2.0
"""How figures are worded: the same digits for the same figure in terminal, pages, report and files.

Pure. Knows units and phrases; knows nothing of tables, pages or the store.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .records import Check, Measurement, Speedup, Status

NOTHING = "–"
"""Stands where there is no figure."""
UNKNOWN = "unknown"
_UNITS_OF_TIME = (("µs", 1.0), ("ms", 1e3), ("s", 1e6))
_LEAST_SHOWN_USD = 1e-4
FILLS_CACHE = (0.5, 2.0)
"""Shares of the last-level cache that a call's data may be for it to depend on who else uses that:
below it they stay there, above it they never do."""

MEANING = {
    Status.VERIFIED: "right in every check of the full protocol, and timed",
    Status.SCREENED: "right in the quick checks; what they timed is an estimate, not credited",
    Status.INCORRECT: "an output was wrong",
    Status.NOT_DISCRIMINATING: "the inputs would let a null kernel pass",
    Status.SUSPECT: "right, but something about its timing cannot be believed",
    Status.BUILD_FAILED: "the compiler refused it",
    Status.CRASHED: "it ended by a signal or a non-zero exit",
    Status.TIMED_OUT: "it met its deadline",
    Status.RESOURCE: "it met a limit of memory, processes or output",
    Status.PROTOCOL_ERROR: "the runner broke the protocol",
    Status.HARNESS_ERROR: "the harness failed; not the candidate's fault",
    Status.UNSUPPORTED: "this machine or version cannot judge it",
}


def word_shares(weights: Sequence[tuple[str, float]]) -> str:
    """`small 75 %; large 25 %` of names with weights."""
    whole = sum(weight for _, weight in weights)
    return "; ".join(f"{name} {weight / whole:.0%}" for name, weight in weights)


def figure(value: float | None) -> str:
    """Three significant digits, whole numbers whole; an exponent for the very large or small."""
    if value is None:
        return NOTHING
    if not math.isfinite(value):
        return f"{value}"
    size = abs(value)
    if size < 1e6 and value == int(value):
        return f"{int(value):,}"
    return _digits(value) if size < 1e6 else f"{value:.3g}"


def micros(value: float | None) -> str:
    """A time given in microseconds, in the unit that people would use."""
    if value is None:
        return NOTHING
    # What rounds to a thousand is one of the next unit.
    unit, scale = next(
        (each for each in _UNITS_OF_TIME if value / each[1] < 999.5), _UNITS_OF_TIME[-1]
    )
    return f"{_digits(value / scale)} {unit}"


def ratio(value: float | None) -> str:
    """How many times as fast; nothing credited is a dash."""
    return f"{value:.2f}×" if value else NOTHING


def interval(found: Speedup | None) -> str:
    """The 95 % interval of a speed-up: `1.80–1.88`."""
    return NOTHING if found is None else f"{found.low:.2f}–{found.high:.2f}"


def speedup(found: Speedup) -> str:
    """`1.84× (95 % 1.80–1.88)`."""
    return f"{ratio(found.median)} (95 % {interval(found)})"


def preparing(found: Measurement) -> str:
    """`812 µs for a pattern, pays after 3 calls`; empty of who prepares nothing."""
    if found.prepare_us is None:
        return ""
    pays = "does not pay against a baseline that prepares nothing"
    if calls := found.pays_after_calls:
        pays = f"pays after {calls:,} call{'s' * (calls > 1)}"
    return f"{micros(found.prepare_us)} for a pattern, {pays}"


def sharing(found: Measurement) -> str:
    """That a call's data are about what the last-level cache holds; empty where they are not."""
    least, most = FILLS_CACHE
    if found.cache_share is None or not least <= found.cache_share <= most:
        return ""
    return (
        f"a call's data are {percent(found.cache_share)} of the last-level cache: on a machine "
        "that others use this speed-up changes with what they leave of it; "
        f"{found.workload.partition('@')[0]}@server times calls on cold caches"
    )


def usd(value: float | None, is_estimated: bool = False) -> str:
    """US dollars, four decimals where cents say too little; an unknown price is never nothing.

    Args:
        is_estimated: The server did not tell what it took.
    """
    if value is None:
        return UNKNOWN
    if 0 < value < _LEAST_SHOWN_USD:
        return f"under ${_LEAST_SHOWN_USD:.4f}"
    is_coarse = value >= 1 or math.isclose(100 * value, round(100 * value), abs_tol=1e-9)
    return _mark(value, is_estimated) + (f"${value:.2f}" if is_coarse else f"${value:.4f}")


def price(value: float | None, is_estimated: bool = False) -> str:
    """The same within a sentence."""
    return "at an unknown price" if value is None else usd(value, is_estimated)


def tokens(value: float, is_estimated: bool = False) -> str:
    """Tokens of a model, without the word."""
    return f"{_mark(value, is_estimated)}{value:,.0f}"


def percent(value: float | None) -> str:
    """A share in per cent."""
    return NOTHING if value is None else f"{100 * value:.3g} %"


def mebibytes(count: float) -> str:
    """A size in bytes."""
    return f"{count / (1 << 20):.1f} MiB"


def duration(seconds: float) -> str:
    """A span of time that was measured; settings have a spelling of their own, without blanks."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def _mark(value: float, is_estimated: bool) -> str:
    return "≈ " if is_estimated and value else ""


def explain_check(check: Check) -> str:
    """What was looked at in a line: name, figure, limit, detail."""
    found = "" if check.figure is None else f" {check.figure:,.4g}"
    limit = "" if check.limit is None else f" (limit {check.limit:,.4g})"
    where = f" [{check.workload}]" if check.workload else ""
    return f"{check.name}{where}:{found}{limit} {check.detail}".rstrip()
