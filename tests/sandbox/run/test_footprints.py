"""Whose memory it is that no program wrote, by where those that ran pointed their stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from kernelwright.sandbox.triton_on_cpu.footprints import Footprints

pytestmark = pytest.mark.jail

BASE, WORD = 1 << 20, 4
TILE = 8
ROWS, COLUMNS = 20, 90
"""Of a matrix whose rows take twelve tiles, the last of them cut."""
ACROSS = -(-COLUMNS // TILE)
SOME = (0, 1, 17, 40, 77, 101, 120, 133, 160, ROWS * ACROSS - 1)

Place = Callable[[int], int]


def stored(grid: tuple[int, int, int], place: Place, ran: Iterable[int] = SOME) -> Footprints:
    """Each program that ran stores one tile."""
    made = Footprints(grid)
    for program in ran:
        made.begin(program)
        words = place(program) + np.arange(TILE, dtype=np.int64)
        made.note(program, (BASE + WORD * words).astype(np.uint64), WORD)
    return made


def by_rows(program: int) -> int:
    """Which column of tiles is what is left over of the row."""
    row, across = divmod(program, ACROSS)
    return row * COLUMNS + across * TILE


def theirs(made: Footprints) -> np.ndarray | None:
    found: np.ndarray | None = made.left_out(BASE, ROWS * COLUMNS, WORD)
    return found


def expected(place: Place) -> np.ndarray:
    mask = np.zeros(ROWS * COLUMNS, dtype=bool)
    for program in set(range(ROWS * ACROSS)) - set(SOME):
        mask[place(program) : place(program) + TILE] = True
    return mask


def test_tiles_in_a_grid_of_two_axes_are_told_apart() -> None:
    found = theirs(stored((ROWS, ACROSS, 1), by_rows))
    assert np.array_equal(found, expected(by_rows))
    # The last program's are the end of the matrix: nobody else can have been meant to write it.
    assert not found[-1]
    assert found.any()


def test_a_number_that_the_kernel_divides_is_too() -> None:
    found = theirs(stored((ROWS * ACROSS, 1, 1), by_rows))
    assert np.array_equal(found, expected(by_rows))


def test_a_tile_of_two_axes_is_its_rows() -> None:
    made = Footprints((16, 1, 1))
    for program in (0, 2, 3, 5, 8, 9, 12, 15):
        made.begin(program)
        tile = np.arange(2)[:, None] * 64 + np.arange(4)[None, :] + 4 * program
        made.note(program, (BASE + WORD * tile).astype(np.uint64), WORD)
    found = made.left_out(BASE, 128, WORD)
    mask = np.zeros((2, 16, 4), dtype=bool)
    mask[:, [1, 4, 6, 7, 10, 11, 13, 14]] = True
    assert np.array_equal(found, mask.reshape(-1))


def test_without_a_law_nothing_is_told() -> None:
    shuffled = np.random.default_rng(3).permutation(ROWS * ACROSS)
    assert theirs(stored((ROWS * ACROSS, 1, 1), lambda p: TILE * int(shuffled[p]))) is None


def test_a_last_tile_that_is_moved_back_breaks_the_law() -> None:
    last = ROWS * COLUMNS - TILE - 1
    assert theirs(stored((ROWS * ACROSS, 1, 1), lambda p: min(p * TILE, last))) is None


def test_of_few_programs_nothing_is_told() -> None:
    assert theirs(stored((ROWS, ACROSS, 1), by_rows, SOME[:5])) is None


def test_programs_that_store_more_often_than_others_tell_nothing() -> None:
    made = stored((ROWS, ACROSS, 1), by_rows)
    made.note(SOME[-1], np.array([BASE], dtype=np.uint64), WORD)
    assert theirs(made) is None
    made.forget(SOME[-1])
    assert theirs(made) is None, "the first kind of program is all there is, but a store was seen"


def test_tiles_of_other_shapes_tell_nothing() -> None:
    made = stored((ROWS, ACROSS, 1), by_rows)
    made.begin(5)
    made.note(5, BASE + WORD * np.arange(2 * TILE, dtype=np.uint64), WORD)
    assert theirs(made) is None


def laid_out(lengths: list[int], ran: Iterable[int], reads: bool) -> Footprints:
    """A program for each row of a sparse matrix, which stores one tile at the row's begin."""
    begins = np.r_[0, np.cumsum(lengths)]
    made = Footprints((len(lengths), 1, 1))
    for program in ran:
        made.begin(program)
        if reads:
            for entry in (program, program + 1):
                address = np.array([WORD * entry + 64], dtype=np.uint64)
                made.note_integers(program, address, begins[[entry]])
        words = begins[program] + np.arange(TILE)
        made.note(program, (BASE + WORD * words).astype(np.uint64), WORD)
    return made


def test_rows_of_one_length_tell_nothing_of_those_that_did_not_run() -> None:
    # Rows 9 and 10 are shorter and longer than all that ran.
    lengths = [8] * 9 + [3, 13] + [8] * 3
    ran = (0, 1, 2, 3, 5, 6, 7, 8, 13)
    assert laid_out(lengths, ran, reads=False).left_out(BASE, sum(lengths), WORD) is not None
    assert laid_out(lengths, ran, reads=True).left_out(BASE, sum(lengths), WORD) is None


def test_integers_that_follow_no_law_leave_the_law_of_the_places() -> None:
    made = Footprints((20, 1, 1))
    pointers = np.random.default_rng(5).integers(0, 1000, 21)
    for program in (0, 1, 4, 7, 9, 12, 16, 19):
        made.begin(program)
        # The first is the same place for all: what it holds is no program's own.
        for entry in (3, program):
            address = np.array([WORD * entry + 64], dtype=np.uint64)
            made.note_integers(program, address, pointers[[entry]])
        words = program * TILE + np.arange(TILE)
        made.note(program, (BASE + WORD * words).astype(np.uint64), WORD)
    found = made.left_out(BASE, 20 * TILE, WORD)
    assert found is not None
    assert found.reshape(20, TILE).all(axis=1).sum() == 12
