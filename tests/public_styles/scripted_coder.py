"""A Coder that plays a script: an endpoint of OpenAI's protocol that answers with kernels which lie
beside the modules.

Its first kernel of a module is wrong, or does not build, or is right, in turn by the module's
place in `modules.toml`. A repair is the hand-written kernel, an optimisation the improved one; of
that one it says that nothing is left.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn
from kernelwright.traces.records import candidate_id

HERE = Path(__file__).parent
ROWS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "modules.toml").read_text("utf-8"))
ADMITTED = [name for name, row in ROWS.items() if row["admitted"]]
MODEL = "openai/scripted"


class First(StrEnum):
    """What becomes of a Coder's first kernel."""

    WRONG = "wrong"
    UNBUILT = "does not build"
    RIGHT = "right"


class Asked(StrEnum):
    """What a question is for, as its headings tell."""

    REPAIR = "# The candidate to repair"
    OPTIMISE = "# The candidate to make faster"
    WRITE = "# What to do"


def read_kernel(name: str) -> str:
    """The hand-written kernel of a module: a plain loop on one thread."""
    return (HERE / "module_kernels" / f"{name}.cpp").read_text("utf-8")


def read_improved(name: str) -> str:
    """What it becomes with threads, vectors and blocks."""
    return (HERE / "module_improved" / f"{name}.cpp").read_text("utf-8")


def choose_first(name: str) -> First:
    """How the first kernel of a module ends."""
    return list(First)[ADMITTED.index(name) % len(First)]


def write_first(name: str) -> str:
    """The first kernel of a module."""
    kernel, first = read_kernel(name), choose_first(name)
    if first is First.WRONG:
        return kernel.replace(*ROWS[name]["wrong"])
    # A type that a port from OpenCL leaves behind.
    return kernel.replace("long", "ulong_t", 1) if first is First.UNBUILT else kernel


def name_kernel(name: str, candidate: str) -> str:
    """Which of a module's kernels a candidate is, by its id."""
    kernels = {"hand-written": read_kernel(name), "improved": read_improved(name)}
    found = [word for word, text in kernels.items() if candidate_id(text) == candidate]
    return found[0] if found else "none of the script's"


class ScriptedCoder:
    """The endpoint, for one module; a context manager."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: Counter[Asked] = Counter()
        """How many questions there were of each kind."""
        self._endpoint = Endpoint(self._answer)

    @property
    def url(self) -> str:
        """What `base_url` is to be."""
        return self._endpoint.url

    def __enter__(self) -> ScriptedCoder:
        self._endpoint.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._endpoint.stop()

    def _answer(self, request: Request) -> Turn:
        asked = next(each for each in Asked if f"\n{each}\n" in request.text)
        self.asked[asked] += 1
        if asked is Asked.WRITE:
            return _propose("a plain loop", write_first(self.name))
        if asked is Asked.REPAIR:
            return _propose("the mistake mended", read_kernel(self.name))
        improved = read_improved(self.name)
        if improved.strip() in request.text:
            return Turn("No change: threads, vectors and blocks are all in it.")
        return _propose("threads, vectors, and blocks that stay in registers", improved)


def _propose(strategy: str, source: str) -> Turn:
    return Turn(f"Strategy: {strategy}\nTechniques: none\n```cpp\n{source}```\n")
