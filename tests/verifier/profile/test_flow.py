"""Natural loops, on graphs whose loops are plain."""

from __future__ import annotations

import pytest

from kernelwright.verifier.profile.flow import find_loops


@pytest.mark.parametrize(
    ("successors", "loops"),
    [
        ([(1,), (2,), ()], {}),
        ([(1,), (1, 2), ()], {1: {1}}),
        # One loop in another.
        ([(1,), (2,), (2, 3), (1, 4), ()], {1: {1, 2, 3}, 2: {2}}),
        # Two ways back to one head are one loop.
        ([(1,), (2, 3), (1,), (1, 4), ()], {1: {1, 2, 3}}),
        # A jump back over code that the loop never runs: by addresses, 3 is inside.
        ([(1,), (2, 4), (1,), (5,), (3,), ()], {1: {1, 2}}),
        # Two entries: no block is passed by all, so it is no natural loop.
        ([(1, 2), (2,), (1, 3), ()], {}),
        # What cannot be reached makes no loop.
        ([(1,), (), (2,)], {}),
    ],
)
def test_loops(successors: list[tuple[int, ...]], loops: dict[int, set[int]]) -> None:
    assert {head: set(inside) for head, inside in find_loops(successors).items()} == loops
