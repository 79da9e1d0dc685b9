# SPDX-License-Identifier: Apache-2.0
"""What a call's kernels did, line by line, for the referee to explain a wrong answer with.

Written beside the outputs as JSON, with the number of the store that wrote each word of each
output. On request a call is run with one thing changed: what masked-off elements hold, the
precision of products, what new memory holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from .load import NAME

LENGTH = np.dtype("<u4")
MOST_SITES = 4096


class Story:
    """Of one call. Without a request it changes and keeps nothing."""

    def __init__(self, request: Mapping[str, Any] | None = None) -> None:
        self.is_told = request is not None
        wanted = request or {}
        self.others: dict[int, float] = {int(k): v for k, v in wanted.get("other", {}).items()}
        """For loads by their lines."""
        self.is_exact = bool(wanted.get("exact"))
        self.is_zeroed = bool(wanted.get("zeroed"))
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._sites: list[dict[str, Any]] = []
        self._loads: dict[int, dict[str, Any]] = {}
        self._products: dict[int, str] = {}
        self._unwritten: dict[int, dict[str, Any]] = {}

    def site(self, watch: Any) -> int:
        """The number of the store that is being made."""
        key = (watch.kernel, line(), watch.place)
        if key not in self._numbers and len(self._sites) < MOST_SITES:
            self._numbers[key] = len(self._sites) + 1
            self._sites.append({"kernel": key[0], "line": key[1], "program": list(key[2])})
        return self._numbers.get(key, 0)

    def loads(self, mask: Any, other: Any, kind: str) -> float | None:
        """Notes a load; what its masked-off elements are to hold instead, None: as it says."""
        at = line()
        off = int(np.size(mask) - np.count_nonzero(mask))
        found = self._loads.setdefault(at, {"off": 0, "other": None, "kind": kind})
        found["off"] += off
        if other is not None and np.size(other):
            value = float(np.asarray(other).reshape(-1)[0])
            found["other"] = repr(value)
        return self.others.get(at)

    def multiplies(self, precision: str) -> None:
        """Notes a product of matrices."""
        self._products[line()] = precision

    def reads_unwritten(self, watch: Any, name: str, doing: str) -> None:
        """Notes a read of memory that nobody has written."""
        self._unwritten.setdefault(line(), {"kernel": watch.kernel, "name": name, "doing": doing})

    def leave(self, room: Any, outputs: Mapping[str, Any]) -> None:
        """Writes it into `room`: a length, JSON, and for each output the numbers of its stores."""
        told = json.dumps(
            {
                "sites": self._sites,
                "loads": self._loads,
                "products": self._products,
                "unwritten": self._unwritten,
            }
        ).encode()
        parts = [np.frombuffer(told, np.uint8)]
        parts += [
            np.ascontiguousarray(o, np.int32).view(np.uint8).reshape(-1) for o in outputs.values()
        ]
        size = sum(part.size for part in parts)
        if size + LENGTH.itemsize > len(room):
            return
        lead = np.array([len(told)], LENGTH).view(np.uint8)
        np.frombuffer(room, np.uint8)[: size + LENGTH.itemsize] = np.concatenate([lead, *parts])


def line() -> int:
    """The innermost line of the candidate's file that is being executed; 0: none."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != NAME:
        frame = frame.f_back
    return int(frame.f_lineno) if frame is not None else 0
