# SPDX-License-Identifier: Apache-2.0
"""Formulas over axes: sums of products, as `M+1` for a shape and `2*M*N*K` for a count."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache

_PART = re.compile(r"[A-Za-z_]\w*|\d+")
Term = tuple[str, ...]
"""Names and numbers, multiplied."""


@cache
def parse_formula(text: str) -> tuple[Term, ...]:
    """Its terms. Raises ValueError, which names what cannot stand there."""
    return tuple(_parts(term, text) for term in text.split("+"))


def value_of(text: str, axes: Mapping[str, int]) -> int:
    """The formula's value for these axes, by name; KeyError of an axis that is not among them."""
    return sum(
        math.prod(int(part) if part.isdigit() else axes[part] for part in term)
        for term in parse_formula(text)
    )


def names_in(text: str) -> Iterator[str]:
    """The axes that a formula names."""
    return (part for term in parse_formula(text) for part in term if not part.isdigit())


def _parts(term: str, text: str) -> Term:
    parts = tuple(part.strip() for part in term.split("*"))
    for part in parts:
        if not _PART.fullmatch(part):
            raise ValueError(
                f"'{part}' in '{text}' is neither an axis nor a whole number: write a sum of "
                "products such as 2*M*N + M"
            )
    return parts
