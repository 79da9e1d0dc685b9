# SPDX-License-Identifier: Apache-2.0
"""What a search over knobs is told of one evaluation."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """What one evaluation showed."""

    point: int
    value: float | None
    """The logarithm of its time, or of its ratio to a reference; None: it failed."""
    error: float = 0.0
    """Standard error of the value."""
