# SPDX-License-Identifier: Apache-2.0
"""The digest of a campaign as prompts tell it, to the Coder and to the Judge alike.

Claims, changed lines and causes come from models, candidates and tools: each list is fenced as
data and held to a size, so that no campaign, however long, makes prompts grow.
"""

from __future__ import annotations

from ...traces.place import Place
from ..roles import Digest, TriedChange
from ..text.untrusted import fence_text, one_line
from .attempts import interval

STRATEGY_CHARACTERS, CAUSE_CHARACTERS = 160, 200
BEST_CHARACTERS, FAILED_CHARACTERS, REFUSED_CHARACTERS = 3_200, 1_800, 1_400
"""Of each list."""


def told_digest(digest: Digest, place: Place) -> str:
    """The section's words; empty while nothing is known."""
    best = "\n".join(_best(each) for each in digest.best)
    failed = "\n".join(_word_failure(each) for each in digest.failed)
    refused = "\n".join(f"- {text}" for text in digest.refused_code)
    parts = [
        _list(
            "The fastest right candidates, best first, with what each changed.",
            best,
            "a list of candidates",
            place,
            BEST_CHARACTERS,
        ),
        _list(
            "The last ones that failed, with the cause.",
            failed,
            "a list of failures",
            place,
            FAILED_CHARACTERS,
        ),
        _list(
            "What compiler, plan reader or machine refused: facts for whatever you write.",
            refused,
            "what the tools said",
            place,
            REFUSED_CHARACTERS,
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _list(head: str, lines: str, what: str, place: Place, characters: int) -> str:
    if not lines:
        return ""
    return f"{head}\n\n{fence_text(lines, what=what, place=place, characters=characters)}"


def _best(attempt: TriedChange) -> str:
    return "\n".join(
        [
            f"#{attempt.number}{_word_parent(attempt)} {_claim(attempt)} -> {_figures(attempt)}",
            *(f"    {line}" for line in attempt.change.splitlines()),
        ]
    )


def _word_failure(attempt: TriedChange) -> str:
    cause = one_line(attempt.failure, CAUSE_CHARACTERS)
    return f"#{attempt.number}{_word_parent(attempt)} {_claim(attempt)} -> {cause}"


def _word_parent(attempt: TriedChange) -> str:
    return f" (a change of #{attempt.parent})" if attempt.parent else ""


def _claim(attempt: TriedChange) -> str:
    return one_line(attempt.strategy, STRATEGY_CHARACTERS) or "its Coder named no strategy"


def _figures(attempt: TriedChange) -> str:
    if attempt.after_us is None:
        return "right, not timed"
    found = [f"{attempt.after_us:.5g} us{' modelled' if attempt.is_modelled else ''}"]
    if attempt.after_speedup:
        found.append(f"speed-up {interval(attempt.after_speedup)}")
    if attempt.beside_champion:
        found.append(f"beside the best of then {interval(attempt.beside_champion)}")
    return ", ".join(found)
