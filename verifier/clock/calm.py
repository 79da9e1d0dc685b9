# SPDX-License-Identifier: Apache-2.0
"""Whether the machine was left alone while a block was timed, as its baselines tell.

Who shares a machine's caches and memory slows some programs more than others: for minutes on end
one sparse library took 1.5 times its time and a kernel beside it 1.25 times, so that the same
kernel was 2.4 and 3.0 times as fast as the library. Such blocks can be known by the baseline alone,
which does the same in all of them, without a look at the candidate or at any ratio.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

import numpy as np

DISTURBED = 1.2
"""Times as long as what baselines take on the undisturbed machine. Processes of one library differ
by 5 % (deviation of a block's median), what was seen to disturb them by 40 to 55 %."""
UNDISTURBED = 0.1
"""That is this quantile of all blocks' medians: not the least, which was lucky."""
LEAST_KNOWN = 3
"""Blocks of a baseline before it tells anything."""
KEPT = 200


class Calm:
    """What baselines take on this machine while nobody disturbs them; one for a session."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[float]] = {}

    def see(self, took: Mapping[str, float]) -> None:
        """Takes in one block: by baseline its median, in microseconds."""
        for name, us in took.items():
            self._seen.setdefault(name, deque(maxlen=KEPT)).append(us)

    def is_disturbed(self, took: Mapping[str, float]) -> bool:
        """Whether the baselines of a block took too long, in the median; False where none tells.

        One of several that took long has troubles of its own: threads of a library that wait for
        each other.
        """
        known = {name: self._seen[name] for name in took if name in self._seen}
        logs = [
            math.log(took[name] / float(np.quantile(seen, UNDISTURBED)))
            for name, seen in known.items()
            if len(seen) >= LEAST_KNOWN
        ]
        return bool(logs) and float(np.median(logs)) > math.log(DISTURBED)
