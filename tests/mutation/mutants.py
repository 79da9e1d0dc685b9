"""Makes mutants, in an order in which every beginning is a fair sample of the operators."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeVar

from kernelwright.kernelbench.languages import CPP

from .explained import unmutated_because
from .operators import OPERATORS, Operator
from .originals import Original
from .tokens import Code
from .values import CUT

_T = TypeVar("_T")


@dataclass(frozen=True)
class Mutant:
    """A right kernel with one mistake."""

    original: Original
    operator: str
    line: int
    before: str
    after: str
    """The line it stands on, and what it became."""
    source: str

    @property
    def problem(self) -> str:
        return self.original.problem

    @property
    def kernel(self) -> str:
        """The name of what it was made of."""
        return self.original.name

    @property
    def id(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def make_mutants(originals: Iterable[Original], seed: int) -> dict[str, list[Mutant]]:
    """By problem: one of each operator, then a second one of each, and so on."""
    by_problem: dict[str, list[Original]] = {}
    for original in originals:
        by_problem.setdefault(original.problem, []).append(original)
    found = {}
    for problem, sources in by_problem.items():
        rng = random.Random(f"{seed} {problem}")
        rng.shuffle(sources)
        cells = [list(_mutate(operator, sources, seed)) for operator in OPERATORS]
        rng.shuffle(cells)
        found[problem] = list(_deal(cells))
    return found


def _mutate(operator: Operator, sources: list[Original], seed: int) -> Iterator[Mutant]:
    """Of one operator, each source in turn."""
    yield from _deal([mutate(operator, source, seed) for source in sources])


def mutate(operator: Operator, original: Original, seed: int) -> list[Mutant]:
    """All mutants that an operator makes of a source, in an order that is drawn."""
    if original.language not in operator.languages:
        return []
    code = original.code
    rng = random.Random(f"{seed} {original.problem} {original.name} {operator.name}")
    made = {}
    for edit in operator.find(code, rng, original.axes):
        line, last = code.line(edit.start), code.line(edit.end)
        before = code.words(line, last)
        if line not in original.active_lines or not _is_code(original, edit.start):
            continue
        if unmutated_because(before):
            continue
        source = code.apply(edit)
        grown = edit.text.count("\n") - code.source.count("\n", edit.start, edit.end)
        after = Code(source).words(line, last + grown)
        if "cut_to_16_bits" in after and original.language == CPP:
            source = CUT + source
        made[source] = Mutant(original, operator.name, line, before, after, source)
    made.pop(original.source, None)
    mutants = list(made.values())
    rng.shuffle(mutants)
    return mutants


def _is_code(original: Original, position: int) -> bool:
    """Whether it stands in neither comment nor string: patterns look at the whole text."""
    return not any(t.start < position < t.end for t in original.code.apart)


def _deal(piles: Iterable[Iterable[_T]]) -> Iterator[_T]:
    none = object()
    for one in chain.from_iterable(zip_longest(*piles, fillvalue=none)):
        if one is not none:
            yield one  # type: ignore[misc]
