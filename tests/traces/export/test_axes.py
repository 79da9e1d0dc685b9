"""What axes are follows from shapes, also where they count blocks."""

from __future__ import annotations

import pytest

from kernelwright.sandbox.run.runner import extent
from kernelwright.traces.export.axes import ExtentTerm, extents, parse_term


@pytest.mark.parametrize(
    ("term", "axes", "constant", "value"),
    [
        ("M", ("M",), 0, 5),
        ("M+1", ("M",), 1, 6),
        ("3*H", ("H", "H", "H"), 0, 6),
        ("2 * H + M + 2*4", ("H", "H", "M"), 8, 17),
        ("7", (), 7, 7),
    ],
)
def test_an_extent_is_a_sum_of_products(
    term: str, axes: tuple[str, ...], constant: int, value: int
) -> None:
    """The runner of Python candidates reads it as the exports do."""
    assert parse_term(term) == ExtentTerm(axes, constant)
    assert extents([term], {"M": 5, "H": 2}) == (value,)
    assert extent(term, {"M": 5, "H": 2}) == value
