# SPDX-License-Identifier: Apache-2.0
"""The knobs of a source and every place where their numbers stand, so that others can be put there.

A knob stands in the front matter, and under its own name in the source: `#define ROWS 4`,
`constexpr int ROWS = 4;`, `ROWS = 4`. All are one number. Where a language has no launch plan a
knob that may be another must have a constant, or nothing would change with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...kernelbench.languages import CPP, PYTHON, Language, Syntax
from ..front_matter import FilePlace, FrontMatter, MalformedError, read_comment, read_docstring
from ..source_text import python_tree
from .faults import PlanFault, PlanRefusedError
from .knobs import DeclaredKnob, read_knobs, resolve_knobs

_C = re.compile(
    r"^[ \t]*(?:#[ \t]*define[ \t]+(?P<macro>[A-Za-z_]\w*)[ \t]+(?P<is>\d+)[ \t]*(?:$|//|/\*)"
    r"|(?:static[ \t]+|inline[ \t]+)*(?:constexpr|const)[ \t]+"
    r"(?:static[ \t]+|unsigned[ \t]+|std::)*"
    r"(?:int|long|unsigned|size_t|u?int(?:8|16|32|64)_t|auto)[ \t]+"
    r"(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?P<value>\d+)[uUlL]*[ \t]*;)",
    re.M,
)
_PYTHON = re.compile(
    r"^(?P<name>[A-Z][A-Z0-9_]*)[ \t]*(?::[^=\n]*)?=[ \t]*(?:(?:tl\.)?constexpr\([ \t]*)?"
    r"(?P<value>\d+)[ \t]*\)?[ \t]*(?:#[^\n]*)?$",
    re.M,
)
_PATTERNS = {Syntax.C: _C, Syntax.PYTHON: _PYTHON}
_NUMBER = re.compile(r"[+-]?[0-9][0-9A-Za-z_]*")


class NamedNumber(NamedTuple):
    """A constant of a source."""

    name: str
    text: str
    """Its digits."""
    start: int
    """Where they stand in the source."""

    def replace(self, source: str, value: int) -> str:
        """The source with another number there."""
        return f"{source[: self.start]}{value}{source[self.start + len(self.text) :]}"


def named_numbers(source: str, language: Language) -> Iterator[NamedNumber]:
    """The integer constants that have a name of their own, in the order in which they stand."""
    for found in _PATTERNS[language.syntax].finditer(source):
        group = "is" if found.groupdict().get("macro") else "value"
        name = found.groupdict().get("macro") or found["name"]
        yield NamedNumber(name, found[group], found.start(group))


@dataclass(frozen=True)
class SourceKnobs:
    """What a source declares, and where."""

    source: str
    knobs: tuple[DeclaredKnob, ...]
    places: tuple[NamedNumber, ...]

    @property
    def now(self) -> dict[str, int]:
        """The knobs that may be other numbers, as the source stands."""
        return {knob.name: knob.value for knob in self.knobs if knob.tried}

    def write(self, chosen: Mapping[str, int]) -> str:
        """The source with these numbers, and what follows from them, at all places.

        Raises:
            PlanRefusedError: what follows from them cannot be computed.
        """
        values = resolve_knobs(self.knobs, chosen)
        text = self.source
        for place in sorted(self.places, key=lambda each: -each.start):
            text = place.replace(text, values[place.name])
        return text


def read_source_knobs(source: str, language: Language) -> SourceKnobs | PlanFault | None:
    """What a source declares, or what is wrong with it; None where no knob may be another."""
    try:
        matter = _read_matter(source, language)
        knobs = read_knobs(matter)
        if not any(knob.tried for knob in knobs):
            return None
        return SourceKnobs(source, knobs, tuple(_find_places(source, language, matter, knobs)))
    except MalformedError:
        # Who builds it says so; where front matter is optional, what cannot be read is none.
        return None
    except PlanRefusedError as error:
        return error.fault


def _read_matter(source: str, language: Language) -> FrontMatter:
    if language.syntax is Syntax.C:
        return read_comment(source)
    return read_docstring(python_tree(source), source)


def _find_places(
    source: str, language: Language, matter: FrontMatter, knobs: tuple[DeclaredKnob, ...]
) -> Iterator[NamedNumber]:
    if not matter.is_verbatim:
        raise PlanRefusedError(
            "knobs that may be others need a docstring without escapes: what stands in it is "
            "what is read",
            matter.start,
        )
    heads: set[int] = set()
    constants = list(named_numbers(source, language))
    for knob in knobs:
        if knob.tried:
            place = matter.place(knob.path)
            start = _offset(source, place)
            found = _NUMBER.match(source, start)
            if found is None or not _is_value(found[0], knob.value):
                example = f"{knob.name} = {{value = {knob.value}, try = […]}}"
                raise _refusal_error(
                    matter, knob, f"the knob {knob.name} must stand below [knobs] as {example}"
                )
            heads.add(start)
            yield NamedNumber(knob.name, found[0], start)
        if not (knob.tried or knob.formula):
            continue
        own = [each for each in constants if each.name == knob.name and each.start not in heads]
        wrong = next((e for e in own if (e.text.lstrip("0") or "0") != str(knob.value)), None)
        if wrong is not None:
            reason = f"the knob {knob.name} is {knob.value}, and the source defines it as"
            raise _refusal_error(matter, knob, f"{reason} {wrong.text}; change both together")
        if knob.tried and not own and language in (CPP, PYTHON):
            form = "a constant of the module" if language is PYTHON else "a constexpr int"
            raise _refusal_error(
                matter,
                knob,
                f"nothing depends on the knob {knob.name}: define {form} of that name, "
                f"{knob.name} = {knob.value}",
            )
        yield from own


def _is_value(text: str, value: int) -> bool:
    """Whether a number of TOML is this one."""
    try:
        return int(text.replace("_", ""), 0) == value
    except ValueError:
        return False


def _refusal_error(matter: FrontMatter, knob: DeclaredKnob, reason: str) -> PlanRefusedError:
    return PlanRefusedError(reason, matter.place(knob.path))


def _offset(source: str, place: FilePlace) -> int:
    start = 0
    for _ in range(place.line - 1):
        start = source.index("\n", start) + 1
    return start + place.column - 1


def explain_knobs(source: str, language: Language) -> PlanFault | None:
    """What is wrong with the knobs of a source in a language without launch plans."""
    found = read_source_knobs(source, language)
    return found if isinstance(found, PlanFault) else None
