# SPDX-License-Identifier: Apache-2.0
"""Has jobs stand still for as long as somebody else has to be waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .model import Job


@contextmanager
def stand_still(jobs: Iterable[Job]) -> Iterator[None]:
    """None of them runs while the block does, and none of it counts as time of theirs."""
    held = list(jobs)
    try:
        for job in held:
            job.stand()
        yield
    finally:
        for job in held:
            job.go_on()
