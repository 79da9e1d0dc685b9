"""Reads the store for pages: one read-only opening per request, histories kept by their newest seq.

Knows nothing of HTTP or HTML.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..history import History, derive
from ..store import Store

_MOST_KEPT = 256


class Reader:
    """Histories of one home, read again only when something new was recorded."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._kept: OrderedDict[str, History] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store for the time of one request."""
        with Store.open(self.home, read_only=True) as store:
            yield store

    def history(self, store: Store, campaign: str) -> History:
        """The history of a campaign as it is now."""
        newest = store.last_seq(campaign)
        with self._lock:
            kept = self._kept.get(campaign)
        if kept is not None and kept.last_seq == newest:
            return kept
        history = derive(store.events(campaign))
        with self._lock:
            self._kept[campaign] = history
            self._kept.move_to_end(campaign)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return history
