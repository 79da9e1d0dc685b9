# SPDX-License-Identifier: Apache-2.0
"""A user's problem in its jail: draws its values and computes its answers for who asks.

Started by process.py with the number of its socket. What the file raises is told with its line.
"""

from __future__ import annotations

import socket
import sys
import traceback
from collections import OrderedDict
from typing import Any

import numpy as np

from ...kernelbench.definition import run_text
from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from .wire import Message, WireError, receive, send

KEPT_STRUCTURES = 4
"""That the other side sends once; it counts them as we do."""
UNBOUNDED = 1 << 62
_TOO_MUCH = "give workloads and ranges of axes that fit into the memory of this machine"
Reply = tuple[Message, list[np.ndarray]]


class _Inside:
    """The state of the process: one problem, and the structures it was asked about last."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.place = ""
        self.structures: OrderedDict[int, Structure] = OrderedDict()

    def answer(self, message: Message, arrays: list[np.ndarray]) -> Reply:
        """Carries out one request."""
        try:
            found: Reply = getattr(self, f"_{message['do']}")(message, arrays)
        except BaseException as error:
            # Of any kind: the file is somebody's, and may leave as well.
            told: Message = {"why": describe_error(error), "line": find_line(error, self.place)}
            is_too_much = isinstance(error, MemoryError)
            return {**told, "hint": _TOO_MUCH if is_too_much else ""}, []
        return found

    def _load(self, message: Message, _arrays: list[np.ndarray]) -> Reply:
        self.place = message["place"]
        self.problem = run_text(message["name"], message["text"], self.place)
        return {}, []

    def _values(self, message: Message, arrays: list[np.ndarray]) -> Reply:
        assert self.problem is not None
        structure, _ = self._structure(message, arrays)
        rng = np.random.default_rng(message["seed"])
        found = self.problem.values(structure, Family(message["family"]), rng)
        wanted = [t.name for t in self.problem.inputs if t.name in found]
        names = [*wanted, *(name for name in found if name not in wanted)]
        return {"names": names}, [np.asarray(found[name]) for name in names]

    def _answer(self, message: Message, arrays: list[np.ndarray]) -> Reply:
        assert self.problem is not None
        found = self.problem.answer(*self._structure(message, arrays))
        return {"names": list(found)}, [np.asarray(each, np.float64) for each in found.values()]

    def _oracle(self, message: Message, arrays: list[np.ndarray]) -> Reply:
        assert self.problem is not None
        structure, inputs = self._structure(message, arrays)
        found = self.problem.oracle(structure, inputs)
        told = [
            np.asarray(part, np.float64)
            for answer in found.values()
            for part in (answer.value, answer.scale, answer.terms, _list_streams(answer))
        ]
        flags = {"exact": "is_exact", "codes": "is_code"}
        said = {key: [bool(getattr(a, f)) for a in found.values()] for key, f in flags.items()}
        return {"names": list(found), **said}, told

    def _structure(self, message: Message, arrays: list[np.ndarray]) -> tuple[Structure, Arrays]:
        """The structure that is meant, and what of the arrays is not its own."""
        named = dict(zip(message["names"], arrays, strict=True))
        key: Any = message["structure"]
        if key not in self.structures:
            own = {name: named.pop(name) for name in message["index"]}
            self.structures[key] = Structure(message["axes"], own)
        self.structures.move_to_end(key)
        while len(self.structures) > KEPT_STRUCTURES:
            self.structures.popitem(last=False)
        return self.structures[key], named


def _list_streams(answer: Expected) -> np.ndarray | tuple[()]:
    """Of an output that is rounded at random; else nothing."""
    return () if answer.streams is None else answer.streams


def main() -> None:
    """Serves until the other side closes its end."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    inside = _Inside()
    send(channel, {"ready": True})
    try:
        while True:
            message, arrays = receive(channel, UNBOUNDED)
            reply, found = inside.answer(message, arrays)
            try:
                send(channel, reply, found)
            except (TypeError, ValueError) as error:
                send(channel, {"why": describe_error(error), "line": 0})
    except WireError:
        return


def describe_error(error: BaseException) -> str:
    """An exception in a line."""
    return f"{type(error).__name__}: {error}"[:400] if str(error) else type(error).__name__


def find_line(error: BaseException, place: str) -> int:
    """The last line of the file that was on the way to the error; 0: none."""
    lines = [
        frame.lineno or 0
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == place
    ]
    return lines[-1] if lines else 0
