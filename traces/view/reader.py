# SPDX-License-Identifier: Apache-2.0
"""Reads the store for pages: one read-only opening per request; of a campaign that was read before
only what was recorded since.

Knows nothing of HTTP or HTML.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..history import History, derive
from ..store import Store
from ..transcript import Transcript, transcribe

_MOST_KEPT = 256


class ReadCampaign(NamedTuple):
    """A campaign as its events tell it, and the store that it was read from."""

    store: Store
    history: History
    transcript: Transcript


@dataclass
class _Kept:
    """What is known of a campaign, and who may look at it or add to it: one at a time."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    history: History | None = None
    transcript: Transcript = field(default_factory=Transcript)


class CampaignReader:
    """Campaigns of one home; each is read whole once, and then goes on from event to event."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store for the time of one request."""
        with Store.open(self.home, read_only=True) as store:
            yield store

    @contextmanager
    def campaign(self, name: str) -> Iterator[ReadCampaign]:
        """The campaign of this name as it is now. Until this ends it is nobody else's."""
        with self.store() as store:
            campaign = store.resolve(name)
            kept = self._find(campaign)
            with kept.lock:
                yield ReadCampaign(store, _catch_up(store, campaign, kept), kept.transcript)

    def _find(self, campaign: str) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(campaign, _Kept())
            self._kept.move_to_end(campaign)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return kept


def _catch_up(store: Store, campaign: str, kept: _Kept) -> History:
    history, kept.history = kept.history, None
    events = store.events(campaign, history.last_seq if history else 0)
    if history is None:
        history, kept.transcript = derive(events), transcribe(events)
    else:
        for event in events:
            history.apply(event)
            kept.transcript.apply(event)
    # Where an event makes no sense, all of them are read again next time.
    kept.history = history
    return history
