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
from .others import OTHERS, TAKEN

MACHINE = "the machine"
"""The side that is a copy within the process of the baselines."""
LEAST_COPIED, MOST_COPIED = 8 << 20, 32 << 20
"""Bytes that it moves. Calls that move less have what they need in caches of their own cores, and
copies of so little vary by a fifth on any machine."""
SLOWED = 1.12
"""Times as long as that copy takes on the undisturbed machine. Of 65 blocks of a softmax whose
library took its usual time, those beyond it credited 8 % less than the others: it is read and
written at memory's speed, and the library at that of its exponentials."""
DISTURBED = (1.08, 1.2)
"""Times as long as what a library takes on the undisturbed machine, at the least and at the most:
where its own processes differ less (deviation of a block's median: 1 to 5 %), it is known sooner.
What was seen to disturb them made them take 1.4 to 1.7 times as long."""
UNDISTURBED = 0.05
"""What is undisturbed is this quantile of all blocks' medians: not the least, which was lucky. Of
an hour on a virtual machine whose neighbours worked a twentieth was left alone."""
_NEXT = 0.2
"""And up to this one, blocks differ by themselves: so many are undisturbed on most days."""
_APART = 0.803
"""Standard deviations of a normal distribution between these two quantiles."""
_BEYOND = 4.0
"""Standard deviations above the lower one: one in a hundred is beyond it by itself."""
LEAST_KNOWN = 3
"""Blocks of a baseline before it tells anything."""
WELL_KNOWN = 20
"""Blocks before it is known how much its own processes differ."""
KEPT = 400
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
            if name == OTHERS:
                continue
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
        """Whether others took the CPUs in a block, its copy took too long, or its baselines in the
        median; False where none tells."""
        return self.disturbance(took) > 1.0

    def disturbance(self, took: Mapping[str, float]) -> float:
        """By how much a block was disturbed, as a share of what is too much; 0 where none tells.

        One of several baselines that took long has troubles of its own: threads of a library that
        wait for each other.
        """
        usual = {name: self.usual_us(name) for name in took}
        logs = {name: math.log(took[name] / us) for name, us in usual.items() if us}
        machine = max(logs.pop(MACHINE, 0.0) / math.log(SLOWED), took.get(OTHERS, 0.0) / TAKEN)
        libraries = [log / self._limit(name) for name, log in logs.items()]
        return max(0.0, machine, float(np.median(libraries)) if libraries else 0.0)

    def _limit(self, name: str) -> float:
        """What a block's median of a library may lie above the usual, as a logarithm."""
        if len(self._seen[name]) < WELL_KNOWN:
            return math.log(DISTURBED[1])
        low, more = np.log(np.quantile(self._seen[name], (UNDISTURBED, _NEXT)))
        return float(np.clip(_BEYOND * (more - low) / _APART, *np.log(DISTURBED)))


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
