# SPDX-License-Identifier: Apache-2.0
"""What is looked at of every answer: words that are drawn as the gate opens.

The runner tells their sum as it says done, so that nobody says so before; and none of them may hold
what was there before the call.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...kernelbench.dtypes import DTYPES
from ...kernelbench.problem import Arrays
from ...sandbox.frames import SUMMED_WORDS
from ...sandbox.run.process import Timed
from ...traces.records import Check
from ..truth.gates import WRITTEN
from ..truth.poison import is_telling, word_of


def sum_outputs(outputs: Arrays, choice: int) -> int:
    """What an honest runner says of these outputs (`sum` in runner.cpp)."""
    drawn = _drawn_words(outputs, choice)
    return sum(int(words.sum(dtype=np.uint64)) for words in drawn) % (1 << 64)


def _drawn_words(outputs: Arrays, choice: int) -> Iterator[np.ndarray]:
    """Of each output the words that were drawn as the gate opened."""
    for array in outputs.values():
        raw = array.reshape(-1).view(np.uint8)
        words = raw[: raw.size // 4 * 4].view(np.uint32)
        step = words.size // SUMMED_WORDS + 1
        yield words[choice % step :: step]


def told_when_done(outputs: Arrays, timed: Timed) -> Check:
    """Whether the outputs were what they are as the runner said done."""
    is_same = sum_outputs(outputs, timed.choice) == timed.told_sum
    detail = "" if is_same else "the outputs were not yet what they are as it was told done"
    return Check(name="done when it said so", passed=is_same, detail=detail)


def all_written(outputs: Arrays, timed: Timed, pattern: int) -> Check:
    """Whether none of the words still holds the poison: of every timed call, also where its answer
    is not among those that are judged."""
    telling = {n: a for n, a in outputs.items() if is_telling(DTYPES[a.dtype.name])}
    drawn = list(_drawn_words(telling, timed.choice))
    missing = sum(
        int((words == word_of(pattern, array.itemsize)).sum())
        for words, array in zip(drawn, telling.values(), strict=True)
    )
    size = sum(words.size for words in drawn)
    detail = f"{missing} of {size} that were drawn never written" if missing else ""
    return Check(name=WRITTEN, passed=not missing, figure=float(missing), limit=0.0, detail=detail)
