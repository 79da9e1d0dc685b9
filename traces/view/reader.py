# SPDX-License-Identifier: Apache-2.0
"""Reads the store for pages: one read-only opening per request, campaigns kept by their newest seq.

Knows nothing of HTTP or HTML.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..history import History, derive
from ..store import Store
from ..transcript import Transcript, transcribe

_MOST_KEPT = 256


class ReadCampaign(NamedTuple):
    """A campaign as its events tell it. It is shared: nobody may change it."""

    history: History
    transcript: Transcript


class CampaignReader:
    """Campaigns of one home, read again only when something new was recorded."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._kept: OrderedDict[str, ReadCampaign] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store for the time of one request."""
        with Store.open(self.home, read_only=True) as store:
            yield store

    def history(self, store: Store, campaign: str) -> History:
        """The history of a campaign as it is now."""
        return self.read(store, campaign).history

    def read(self, store: Store, campaign: str) -> ReadCampaign:
        """The campaign as it is now."""
        newest = store.last_seq(campaign)
        with self._lock:
            kept = self._kept.get(campaign)
        if kept is not None and kept.history.last_seq == newest:
            return kept
        events = store.events(campaign)
        found = ReadCampaign(derive(events), transcribe(events))
        with self._lock:
            self._kept[campaign] = found
            self._kept.move_to_end(campaign)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found
