# SPDX-License-Identifier: Apache-2.0
"""The numbers of a source that may be other numbers: tile sizes, unrolling, schedules.

A knob search needs no model where a source names its constants. Which of them are free is not
known here: one that is part of the meaning gives a wrong candidate, and the referee says so.
"""

from __future__ import annotations

from typing import NamedTuple

from ...kernelbench.languages import language_of
from ...sandbox.plan.source_knobs import NamedNumber, named_numbers

MOST = 1 << 20
"""Larger numbers are no knobs."""


class ConstantVariant(NamedTuple):
    """A source with one number changed."""

    source: str
    change: str
    """In words: which, from what, to what."""


def variants(source: str, language: str) -> list[ConstantVariant]:
    """The source with each named constant doubled, then with each halved, in their order.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    numbers = named_numbers(source, language_of(language))
    found = [number for number in numbers if 1 <= _value(number) <= MOST]
    doubled = [_make_variant(source, number, 2 * _value(number)) for number in found]
    halved = [
        _make_variant(source, number, _value(number) // 2) for number in found if _value(number) > 1
    ]
    return doubled + halved


def _value(number: NamedNumber) -> int:
    digits = number.text
    # An octal literal, or more digits than a knob has.
    return int(digits) if len(digits) < 9 and not (len(digits) > 1 and digits[0] == "0") else 0


def _make_variant(source: str, number: NamedNumber, value: int) -> ConstantVariant:
    change = f"{number.name} = {value} instead of {_value(number)}"
    return ConstantVariant(number.replace(source, value), change)
