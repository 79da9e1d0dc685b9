# SPDX-License-Identifier: Apache-2.0
"""How a campaign and one of its candidates are named by people.

`ID`, `ID@best`, `ID/CANDIDATE`, `@last`, `@last/12`, and `@best` for the last campaign's champion.
The store itself knows what an id's beginning stands for.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError

if TYPE_CHECKING:
    from .store import Store


LAST = "@last"
"""The newest campaign of a home."""
BEST = "@best"
"""The champion of a campaign."""


class Name(NamedTuple):
    """A campaign, and a candidate where one was named; still as the user wrote them."""

    campaign: str
    candidate: str | None


class FoundIds(NamedTuple):
    """The full ids."""

    campaign: str
    candidate: str | None


def parse(text: str) -> Name:
    """Splits what the user wrote.

    Raises:
        UsageError: a part is empty.
    """
    if text == BEST:
        return Name(LAST, BEST)
    if text.endswith(BEST):
        campaign, candidate = text.removesuffix(BEST).removesuffix("/"), BEST
    elif "/" in text:
        campaign, _, candidate = text.partition("/")
    else:
        campaign, candidate = text, ""
        if text:
            return Name(text, None)
    if not campaign or not candidate:
        raise UsageError(
            f"'{text}' does not name a campaign or a candidate",
            hint="write ID, ID@best, ID/CANDIDATE, @last or @best",
        )
    return Name(campaign, candidate)


def find(store: Store, text: str) -> FoundIds:
    """The ids that `text` names in this store."""
    name = parse(text)
    campaign = store.resolve(name.campaign)
    if name.candidate is None:
        return FoundIds(campaign, None)
    return FoundIds(campaign, store.resolve_candidate(campaign, name.candidate))


def new_id(now: float) -> str:
    """The id of a campaign that begins now: ids sort by time."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{int(now * 1000) % 1000:03d}{secrets.token_hex(2)}"
