# SPDX-License-Identifier: Apache-2.0
"""Whether the machine was left alone while a block was timed, as its baselines tell.

Who shares a machine's caches and memory slows some programs more than others: for minutes on end
one sparse library took 1.5 times its time and a kernel beside it 1.25 times, so that the same
kernel was 2.4 and 3.0 times as fast as the library. Such blocks can be known by the baseline alone,
which does the same in all of them, without a look at the candidate or at any ratio. Where a library
computes and a kernel waits for memory the library does not tell: a copy does, which is timed in
every round as they are, of as many bytes as a call moves.
"""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..baselines.process import BaselineProcess
from ..truth.trials import Item

MACHINE = "the machine"
"""The side that is a copy within the process of the baselines."""
LEAST_COPIED, MOST_COPIED = 8 << 20, 32 << 20
"""Bytes that it moves. Calls that move less have what they need in caches of their own cores, and
copies of so little vary by a fifth on any machine."""
SLOWED = 1.15
"""Times as long as that copy takes on the undisturbed machine. Of 65 blocks of a softmax whose
library took its usual time, those beyond it credited 6 % less than the others: it is read and
written at memory's speed, and the library at that of its exponentials."""
DISTURBED = 1.2
"""Times as long as what baselines take on the undisturbed machine. Processes of one library differ
by 5 % (deviation of a block's median), what was seen to disturb them by 40 to 55 %."""
UNDISTURBED = 0.1
"""That is this quantile of all blocks' medians: not the least, which was lucky."""
LEAST_KNOWN = 3
"""Blocks of a baseline before it tells anything."""
KEPT = 200
"""Blocks, of any session."""


class Calm:
    """What baselines take on this machine while nobody disturbs them.

    A session may lie in a disturbed hour from end to end, and one evaluation nearly always lies in
    one state: it is known from one to the next.
    """

    def __init__(self, kept: Path | None = None) -> None:
        """`kept` is the file in which it stands, of whatever decides what they take; None: it is
        known for this session alone."""
        self._kept = kept
        self._seen: dict[str, deque[float]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(kept.read_text("utf-8")) if kept else {}
            self._seen = {name: deque(map(float, us), maxlen=KEPT) for name, us in found.items()}

    def see(self, took: Mapping[str, float]) -> None:
        """Takes in one block: by baseline its median, in microseconds."""
        for name, us in took.items():
            self._seen.setdefault(name, deque(maxlen=KEPT)).append(us)
        if self._kept:
            beside = self._kept.with_suffix(f".{os.getpid()}")
            # Nobody needs it: a full disk is for others to complain of.
            with suppress(OSError):
                self._kept.parent.mkdir(parents=True, exist_ok=True)
                beside.write_text(json.dumps({n: list(us) for n, us in self._seen.items()}))
                beside.replace(self._kept)

    def usual_us(self, name: str) -> float | None:
        """What a baseline takes on the undisturbed machine; None where that is not known yet."""
        seen = self._seen.get(name, ())
        return float(np.quantile(seen, UNDISTURBED)) if len(seen) >= LEAST_KNOWN else None

    def is_disturbed(self, took: Mapping[str, float]) -> bool:
        """Whether the copy of a block took too long, or its baselines in the median; False where
        none tells."""
        return self.disturbance(took) > 1.0

    def disturbance(self, took: Mapping[str, float]) -> float:
        """By how much a block was disturbed, as a share of what is too much; 0 where none tells.

        One of several baselines that took long has troubles of its own: threads of a library that
        wait for each other.
        """
        usual = {name: self.usual_us(name) for name in took}
        logs = {name: math.log(took[name] / us) for name, us in usual.items() if us}
        machine = logs.pop(MACHINE, 0.0) / math.log(SLOWED)
        libraries = float(np.median(list(logs.values()))) if logs else 0.0
        return max(0.0, machine, libraries / math.log(DISTURBED))


class MachineSide:
    """A copy of so many bytes, timed as a baseline is; see timed_sides.Side. It has no inputs."""

    name = MACHINE
    waited = 0.0

    def __init__(self, process: BaselineProcess, moved: float) -> None:
        """`moved`: bytes that a call moves, LEAST_COPIED or more."""
        self._process = process
        process.add_copy(MACHINE, int(min(MOST_COPIED, moved)))

    def take(self, items: list[Item], first: int) -> float:
        """Microseconds of one copy."""
        del items, first
        return self._process.call(MACHINE, self._process.slots[:1]) / 1e3
