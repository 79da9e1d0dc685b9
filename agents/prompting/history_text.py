# SPDX-License-Identifier: Apache-2.0
"""What was tried before, as prompts tell it to the Coder and to the Judge alike."""

from __future__ import annotations

from ...traces.place import Place
from ...traces.records import Speedup
from ..roles import Lineage, TriedChange
from ..text.untrusted import fence_text, one_line
from .attempts import interval

STRATEGY_CHARACTERS = 200
REASON_CHARACTERS = 240
_SAME = 0.02
"""A difference of modelled times below which neither is called faster."""

_LOOKS = (
    "Speed-ups of this list are screen estimates (SCREENED: one process, few calls); a "
    "confirmation (VERIFIED: several processes) can find another one."
)


def told_history(history: Lineage, place: Place) -> str:
    """The section's words; empty where nothing was tried before."""
    lines = [
        *(f"- led to this candidate: {_line(each)}" for each in history.led_here[:-1]),
        *(f"- this candidate: {_line(each)}" for each in history.led_here[-1:]),
        *(f"- tried on this candidate: {_line(each)}" for each in history.tried),
        *(f"- a reply was refused: {one_line(why, REASON_CHARACTERS)}" for why in history.refused),
    ]
    if not lines:
        return ""
    listed = fence_text("\n".join(lines), what="the list of attempts, oldest first", place=place)
    if any(each.after_speedup for each in (*history.led_here, *history.tried)):
        listed += "\n\n" + _LOOKS
    if not (history.tried or history.refused):
        return f"{history.standing}\n\n{listed}"
    rule = (
        "Do not repeat what was tried on this candidate, nor a small variation of what made it "
        "slower or wrong; do not send again what was refused."
    )
    return "\n\n".join(text for text in (history.standing, listed, rule) if text)


def _line(attempt: TriedChange) -> str:
    said = one_line(attempt.strategy, STRATEGY_CHARACTERS) or "its Coder named no strategy"
    advised = f" [advised: {attempt.advised}]" if attempt.advised else ""
    return f"#{attempt.number} {said}{advised} -> {_outcome(attempt)}"


def _outcome(attempt: TriedChange) -> str:
    if attempt.failure:
        return one_line(attempt.failure, REASON_CHARACTERS)
    before, after = attempt.before_us, attempt.after_us
    if after is None:
        return "right, not timed"
    kind = " modelled" if attempt.is_modelled else ""
    was, now = attempt.before_speedup, attempt.after_speedup
    if before is None:
        return f"speed-up {interval(now)}" if now else f"{after:.5g} us{kind}"
    if not (was and now):
        return f"{before:.5g} us to {after:.5g} us{kind}, {_word(before / after)}"
    # Times of two runs do not compare: the machine itself may have been faster or slower.
    compared = f"speed-up {interval(was)} to {interval(now)}, {_difference(was, now)}"
    beside = attempt.beside_champion
    return compared + (f"; beside the best of then {interval(beside)}" if beside else "")


def _difference(was: Speedup, now: Speedup) -> str:
    if now.low > was.high:
        return "faster"
    return "slower" if now.high < was.low else "within the noise"


def _word(gain: float) -> str:
    if abs(gain - 1.0) < _SAME:
        return "no difference"
    return "faster" if gain > 1.0 else "slower"
