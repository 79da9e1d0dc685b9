# SPDX-License-Identifier: Apache-2.0
"""What a whole campaign has found so far, in few entries: the same for whoever is asked at a place.

The fastest candidates with what they changed, the last ones that failed with why, and what the
tool-chain refused. It holds nothing that the campaign's own record does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...traces.records import Status, Verdict
from ..books.candidate import KnownCandidate
from ..books.progress import Progress
from ..roles import Digest
from ..text.untrusted import one_line
from .attempts import Source, attempt

MOST_BEST, MOST_FAILED, MOST_REFUSED = 3, 5, 6
ERRORS_OF_ONE, ERROR_CHARACTERS = 2, 200
"""Of one candidate's log: later errors mostly follow from the first ones."""
BY_TOOLS = (Status.BUILD_FAILED, Status.UNSUPPORTED)
"""What is said then is a fact about compiler, plan or machine, and no opinion of a strategy."""

_ERROR = re.compile(r"^.*?\b(?:fatal )?error\b(?: [A-Z]+\d+)?[^:\n]*: *(.+)$", re.M | re.I)
"""As g++, NVRTC, ptxas and Python name one, behind file and line."""


def make_digest(progress: Progress, known: Sequence[KnownCandidate], source: Source) -> Digest:
    """The digest of these candidates.

    Args:
        known: What the place that asks may know, oldest first.
    """
    failed = [each for each in known if each.fault]
    return Digest(
        best=tuple(attempt(progress, each, source) for each in _best(progress, known)),
        failed=tuple(attempt(progress, each, source) for each in failed[-MOST_FAILED:]),
        refused_code=_list_errors(failed),
    )


def _best(progress: Progress, known: Sequence[KnownCandidate]) -> list[KnownCandidate]:
    """Fastest first. What a model holds for unearned is no example to others."""
    ranked = [
        (-each.standing, each.number, each)
        for each in known
        if not each.fault and each.standing is not None and not progress.is_suspected(each.place)
    ]
    return [each for _, _, each in sorted(ranked, key=lambda ranking: ranking[:2])[:MOST_BEST]]


def _list_errors(failed: Sequence[KnownCandidate]) -> tuple[str, ...]:
    """The newest errors of builds, each once."""
    said: dict[str, None] = {}
    for each in reversed(failed):
        verdict = each.fault
        if verdict and verdict.status in BY_TOOLS:
            said |= dict.fromkeys(reversed(list(_errors(verdict))))
        if len(said) >= MOST_REFUSED:
            break
    return tuple(reversed([*said][:MOST_REFUSED]))


def _errors(verdict: Verdict) -> Iterator[str]:
    """What a build said, without the lines that it said it of: those are of another source."""
    found = _ERROR.findall(verdict.log) or _ERROR.findall("\n".join(verdict.reasons))
    for text in list(dict.fromkeys(found or verdict.reasons[:1]))[:ERRORS_OF_ONE]:
        yield one_line(text, ERROR_CHARACTERS)
