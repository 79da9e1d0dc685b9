# SPDX-License-Identifier: Apache-2.0
"""Reads the store for pages: one read-only opening per request, and of a campaign only what is
shown. Knows nothing of HTTP or HTML.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..sheet import Sheet
from ..store import Store

_MOST_KEPT = 8
"""Campaigns without an index, of earlier versions, that are kept as they were read last."""


class ReadCampaign(NamedTuple):
    """A campaign as it stands now, and the store that it is read from."""

    store: Store
    sheet: Sheet


class CampaignReader:
    """Campaigns of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._folded: OrderedDict[tuple[str, int], Sheet] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store for the time of one request."""
        with Store.open(self.home, read_only=True) as store:
            yield store

    @contextmanager
    def campaign(self, name: str) -> Iterator[ReadCampaign]:
        """The campaign of this name as it is now."""
        with self.store() as store:
            campaign = store.resolve(name)
            with store.sheet(campaign, partial(self._fold, store)) as sheet:
                yield ReadCampaign(store, sheet)

    def _fold(self, store: Store, campaign: str) -> Sheet:
        """Of one that has no index; one after the other, since each may take long."""
        key = (campaign, store.last_seq(campaign))
        with self._lock:
            if key not in self._folded:
                self._folded[key] = Sheet.of_events(store.events(campaign))
                while len(self._folded) > _MOST_KEPT:
                    self._folded.popitem(last=False)
            return self._folded[key]
