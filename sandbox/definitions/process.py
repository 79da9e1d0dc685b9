# SPDX-License-Identifier: Apache-2.0
"""Outside of the jail in which a user's problem runs: asks it for values and answers.

What comes back is held against what the problem declares.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ...kernelbench import module
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.problem import (
    Arrays,
    Expected,
    Family,
    MeasuringOracle,
    Problem,
    Structure,
    Tensor,
)
from ..builders.cache import key_of
from ..builders.workshop import Workshop
from ..isolation import choose
from .inside import KEPT_STRUCTURES
from .talk import Talk
from .wire import Message

_HELD = "as the definition holds it"
"""In the cache of a structure: its number there."""
_PARTS = ("value", "scale", "terms", "streams")
"""Of an answer, as they are sent."""


@contextmanager
def open_problem(problem: Problem, workshop: Workshop | None = None) -> Iterator[Problem]:
    """The problem with functions that can be called: a user's in a jail, the best one of this
    machine where no workshop says which."""
    if not problem.text:
        yield problem
        return
    definition = Definition(problem, workshop or Workshop(choose(), Path()))
    try:
        yield definition.problem()
    finally:
        definition.close()


def trace_module(text: str, place: str, workshop: Workshop) -> str:
    """The text of the problem that a PyTorch module's file is, traced in a jail (tracing.py); once
    for each version of the file, of torch and of what traces.

    Raises:
        UsageError: it cannot be traced; with the line.
        SandboxError: the jail failed.
        StorageError: the cache folder cannot be used.
    """
    asked = {"text": text, "place": place}

    def trace() -> bytes:
        talk = Talk(workshop, "sandbox.definitions.tracing", place)
        try:
            return str(talk.ask("tracing", asked)[0].get("text", "")).encode()
        finally:
            talk.close()

    ours = hashlib.sha256()
    for source in (*sorted(Path(__file__).parent.glob("*.py")), Path(module.__file__)):
        ours.update(source.read_bytes())
    key = key_of({**asked, "ours": ours.hexdigest(), "torch": version("torch")})
    return workshop.cache.own(key, trace).decode()


class Definition:
    """One user's problem in a jail of its own. Thread-safe: one request at a time."""

    def __init__(self, problem: Problem, workshop: Workshop, place: str = "") -> None:
        """Starts it and runs the file.

        Args:
            problem: as it is read (kernelbench/definition.py).
            place: what the file is called in an error.

        Raises:
            UsageError: the file raises, ends, or takes too long.
            SandboxError: the jail failed.
        """
        self._problem = problem
        self._numbers = itertools.count()
        self._held: OrderedDict[int, None] = OrderedDict()
        place = place or f"{problem.name}.py"
        self._talk = Talk(workshop, "sandbox.definitions.inside", place)
        try:
            told = {"name": problem.name, "text": problem.text, "place": place}
            self._talk.ask("runs", {"do": "load", **told})
        except BaseException:
            self.close()
            raise

    def problem(self) -> Problem:
        """The problem, with functions that ask this process."""
        oracle = MeasuringOracle(self.oracle, self.answer)
        return replace(self._problem, values=self.values, oracle=oracle)

    def values(self, structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
        """See Problem. Raises UsageError where the file fails or gives what it may not."""
        wanted = [tensor for tensor in self._problem.inputs if not tensor.is_index]
        seed = int(rng.integers(1 << 62))
        asked = {"do": "values", "family": family.value, "seed": seed}
        arrays, _ = self._ask(structure, "values", asked, {}, wanted, parts=1)
        found = dict(zip((tensor.name for tensor in wanted), arrays, strict=True))
        for tensor in wanted:
            self._ensure_like("values", tensor, structure, found[tensor.name], tensor.dtype)
            may_be_infinite = family is Family.NONFINITE or tensor.name in self._problem.constants
            if not may_be_infinite and not np.isfinite(found[tensor.name]).all():
                self._talk.refuse("values", f"{tensor.name} is not finite in the family {family}")
        return found

    def answer(self, structure: Structure, inputs: Arrays) -> Arrays:
        """See Problem. Raises UsageError where the file fails or gives what it may not."""
        wanted = self._problem.outputs
        arrays, _ = self._ask(structure, "oracle", {"do": "answer"}, inputs, wanted, parts=1)
        found = dict(zip((tensor.name for tensor in wanted), arrays, strict=True))
        for tensor in wanted:
            self._ensure_like("oracle", tensor, structure, found[tensor.name], "float64")
        return found

    def oracle(self, structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        """See Problem. Raises UsageError where the file fails or gives what it may not."""
        wanted, parts = self._problem.outputs, len(_PARTS)
        arrays, message = self._ask(
            structure, "oracle", {"do": "oracle"}, inputs, wanted, parts=parts
        )
        exact, codes = (list(message.get(key, [])) for key in ("exact", "codes"))
        found = {}
        for at, tensor in enumerate(wanted):
            value, scale, terms, streams = arrays[parts * at : parts * (at + 1)]
            self._ensure_like("oracle", tensor, structure, value, "float64")
            self._ensure_scale(tensor.name, value, scale, terms)
            self._ensure_streams(tensor, value, streams)
            length = float(terms) if terms.ndim == 0 else terms
            is_exact, is_code = (bool(said[at : at + 1] == [True]) for said in (exact, codes))
            found[tensor.name] = Expected(
                value, scale, length, is_exact, is_code, streams if streams.size else None
            )
        return found

    def close(self) -> None:
        """Ends the process. May be called twice."""
        self._talk.close()

    def _ask(
        self,
        structure: Structure,
        function: str,
        asked: Message,
        inputs: Mapping[str, np.ndarray],
        wanted: Sequence[Tensor],
        parts: int,
    ) -> tuple[list[np.ndarray], Message]:
        """What is told of a structure, whose arrays are sent where they are not there any more: so
        many arrays for each of the tensors that are wanted."""
        sizes = [int(np.prod(t.extent(structure.axes), dtype=object)) for t in wanted]
        with self._talk.lock:
            number = structure.cache.setdefault(_HELD, next(self._numbers))
            sent = {} if number in self._held else structure.arrays
            self._held[number] = None
            self._held.move_to_end(number)
            while len(self._held) > KEPT_STRUCTURES:
                self._held.popitem(last=False)
            told = {
                "structure": number,
                "axes": structure.axes,
                "index": list(sent),
                "names": [*sent, *inputs],
            }
            arrays = [*sent.values(), *inputs.values()]
            most = parts * (8 * sum(sizes) + 64 * len(sizes))
            message, found = self._talk.ask(function, {**asked, **told}, arrays, most)
        names = [tensor.name for tensor in wanted]
        if message.get("names") != names or len(found) != parts * len(names):
            self._talk.refuse(function, f"it gives {message.get('names')}, not {names}")
        return found, message

    def _ensure_like(
        self, function: str, tensor: Tensor, structure: Structure, array: np.ndarray, dtype: str
    ) -> None:
        wanted = tensor.extent(structure.axes)
        if array.shape != wanted or array.dtype != np.dtype(dtype):
            axes = ", ".join(f"{axis}={value}" for axis, value in structure.axes.items())
            self._talk.refuse(
                function,
                f"{tensor.name} is {array.dtype}{list(array.shape)} and must be "
                f"{dtype}{list(wanted)} for {axes}",
            )

    def _ensure_streams(self, tensor: Tensor, value: np.ndarray, streams: np.ndarray) -> None:
        """Of an output that is rounded at random: one number for each row."""
        if not streams.size:
            return
        if not dtype_of(tensor.dtype).is_float or streams.shape != value.shape[:1]:
            self._talk.refuse(
                "oracle",
                f"the streams of {tensor.name}, {tensor.dtype}{list(value.shape)}, have shape "
                f"{list(streams.shape)}: an output of floats has one for each row",
            )
        if not np.isfinite(streams).all():
            self._talk.refuse("oracle", f"a stream of {tensor.name} is no number")

    def _ensure_scale(
        self, name: str, value: np.ndarray, scale: np.ndarray, terms: np.ndarray
    ) -> None:
        try:
            is_like = np.broadcast_shapes(scale.shape, terms.shape, value.shape) == value.shape
        except ValueError:
            is_like = False
        if not is_like:
            self._talk.refuse("oracle", f"the scale of {name} has shape {list(scale.shape)}")
        if not (np.isfinite(terms).all() and (scale >= 0).all()):
            self._talk.refuse("oracle", f"a scale of {name} is negative or no number")
