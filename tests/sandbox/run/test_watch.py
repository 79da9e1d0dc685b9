"""The watch over interpreted programs, without an interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.sandbox.triton_on_cpu.patience import Patience
from kernelwright.sandbox.triton_on_cpu.watch import (
    HEAD,
    LEAST,
    EnoughError,
    MemoryFault,
    Region,
    SpoiledError,
    TooLongError,
    Watch,
)

pytestmark = pytest.mark.jail

BASE = 1 << 20
WORDS = 64


def watch(*schedules: str, steps: int = 1000, sample: int = 1000) -> Watch:
    made = Watch(schedules or ("order",), Patience(steps=steps, sample=sample, sampled=0, small=0))
    made.next_schedule()
    made.begin(
        [
            Region("x", BASE, 4 * WORDS, is_writable=False),
            Region("y", 2 * BASE, 4 * WORDS, is_writable=True),
        ]
    )
    made.kernel = "k"
    return made


def at(*words: int, base: int = 2 * BASE) -> np.ndarray:
    return np.array([base + 4 * word for word in words], dtype=np.uint64)


def everything(pointers: np.ndarray) -> np.ndarray:
    return np.ones(pointers.shape, dtype=bool)


def write(made: Watch, *words: int) -> None:
    made.write(at(*words), everything(at(*words)), 4)


def read(made: Watch, *words: int, base: int = 2 * BASE) -> None:
    made.read(at(*words, base=base), everything(at(*words)), 4)


def meet(made: Watch, word: int) -> None:
    made.exchange(at(word), everything(at(word)), 4, orders=True)


def turns(made: Watch, grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    made.launch(grid)
    return [
        made.turn(x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2])
    ]


def test_every_schedule_runs_every_program_once() -> None:
    grid = (3, 2, 4)
    first = turns(watch("order"), grid)
    assert first == sorted(first)
    assert turns(watch("reverse"), grid) == first[::-1]
    mixed = turns(watch("random:1"), grid)
    assert mixed != first
    assert sorted(mixed) == first
    assert turns(watch("random:1"), grid) == mixed
    assert turns(watch("random:2"), grid) != mixed


def test_schedules_take_turns() -> None:
    made = watch("order", "reverse")
    assert [made.next_schedule() for _ in range(3)] == ["reverse", "order", "reverse"]


@pytest.mark.parametrize(
    ("words", "base", "told"),
    [
        ((WORDS,), 2 * BASE, "0 bytes past the end of y, at element 64 of 64"),
        ((-1,), 2 * BASE, "4 bytes before the start of y"),
        ((0, WORDS + 3), BASE, "12 bytes past the end of x"),
    ],
)
def test_outside_is_told(words: tuple[int, ...], base: int, told: str) -> None:
    made = watch()
    turns(made, (1, 1, 1))
    with pytest.raises(MemoryFault, match=told):
        read(made, *words, base=base)


def test_masked_elements_may_be_anywhere() -> None:
    made = watch()
    turns(made, (1, 1, 1))
    pointers = at(0, 10_000)
    made.read(pointers, np.array([True, False]), 4)
    made.write(pointers, np.array([False, False]), 4)
    # The turn, and both accesses.
    assert made.steps == 3


def test_an_element_that_sticks_out_is_outside() -> None:
    made = watch()
    turns(made, (1, 1, 1))
    with pytest.raises(MemoryFault, match="past the end"):
        made.read(at(WORDS - 1), everything(at(0)), 8)


def both(made: Watch) -> None:
    """Begins a launch of two programs; the first one runs."""
    made.launch((2, 1, 1))
    made.turn(0, 0, 0)


RACES = {
    "write, write": (lambda m: write(m, 3, 4), lambda m: write(m, 4, 5)),
    "write, read": (lambda m: write(m, 3, 4), lambda m: read(m, 4)),
    "read, write": (lambda m: read(m, 4), lambda m: write(m, 4)),
    "write, atomic": (lambda m: write(m, 4), lambda m: meet(m, 4)),
}


@pytest.mark.parametrize("name", RACES)
def test_two_programs_on_one_word_are_a_race(name: str) -> None:
    first, second = RACES[name]
    made = watch()
    both(made)
    first(made)
    made.turn(1, 0, 0)
    with pytest.raises(MemoryFault, match=r"program \(1, 0, 0\) .* \(0, 0, 0\) .* in no order"):
        second(made)


@pytest.mark.parametrize("name", RACES)
def test_one_program_or_two_launches_are_none(name: str) -> None:
    first, second = RACES[name]
    made = watch()
    both(made)
    first(made)
    second(made)
    both(made)
    made.turn(1, 0, 0)
    second(made)
    region = made.at(2 * BASE)
    assert region is not None
    assert region.touched


def test_reading_together_is_no_race() -> None:
    made = watch()
    both(made)
    read(made, 1, 2)
    made.turn(1, 0, 0)
    read(made, 1, 2)
    with pytest.raises(MemoryFault, match="another program"):
        write(made, 1)


def test_writing_the_same_is_no_race() -> None:
    made = watch()
    both(made)
    write(made, 1)
    made.turn(1, 0, 0)
    made.write(at(1, 2), everything(at(1, 2)), 4, lambda: np.array([True, False]))
    both(made)
    write(made, 1)
    made.turn(1, 0, 0)
    with pytest.raises(MemoryFault, match="writes something else"):
        made.write(at(1, 2), everything(at(1, 2)), 4, lambda: np.array([False, True]))


def test_meeting_at_an_atomic_orders_programs() -> None:
    made = watch()
    made.launch((3, 1, 1))
    made.turn(0, 0, 0)
    write(made, 1)
    meet(made, 0)
    made.turn(1, 0, 0)
    meet(made, 0)
    read(made, 1)
    made.turn(2, 0, 0)
    with pytest.raises(MemoryFault, match="in no order"):
        read(made, 1)
    meet(made, 0)
    read(made, 1)


def test_relaxed_atomics_and_sums_over_tiles_order_nothing() -> None:
    for words, orders in (((0,), False), ((0, 2), True)):
        made = watch()
        both(made)
        write(made, 1)
        made.exchange(at(*words), everything(at(*words)), 4, orders=orders)
        made.turn(1, 0, 0)
        made.exchange(at(*words), everything(at(*words)), 4, orders=orders)
        with pytest.raises(MemoryFault, match="in no order"):
            read(made, 1)


def test_an_input_is_not_written() -> None:
    made = watch()
    turns(made, (1, 1, 1))
    with pytest.raises(MemoryFault, match="writes to the input x"):
        made.write(at(0, base=BASE), everything(at(0)), 4)


def test_patience_with_one_program_ends() -> None:
    made = watch(steps=3)
    turns(made, (1, 1, 1))
    for _ in range(2):
        read(made, 0)
    with pytest.raises(TooLongError, match="one program takes more than 3 loads"):
        read(made, 0)


MANY_WORDS = 10 * WORDS


def elements(*places: int, size: int, base: int = 2 * BASE) -> np.ndarray:
    return np.array([base + size * place for place in places], dtype=np.uint64)


def sampled(made: Watch, count: int, size: int = 4) -> list[int]:
    """Runs programs that read a word and then write an element each until the rest is left out."""
    made.add(Region("z", 3 * BASE, size * MANY_WORDS, is_writable=True))
    made.given = [3 * BASE]
    made.launch((count, 1, 1))
    ran = []
    for number in range(count):
        try:
            ran.append(made.turn(number, 0, 0)[0])
        except EnoughError:
            break
        read(made, 0, base=BASE)
        made.write(elements(ran[-1], size=size, base=3 * BASE), everything(at(0)), size)
    made.leave()
    return ran


def test_of_a_large_grid_the_ends_run_and_the_rest_is_left_out() -> None:
    made = watch(sample=60)
    ran = sampled(made, MANY_WORDS)
    assert {0, MANY_WORDS - 1} <= set(ran)
    assert LEAST < len(ran) < 60
    assert made.coverage.programs == MANY_WORDS
    assert made.coverage.left_out == MANY_WORDS - len(ran)
    region = made.at(3 * BASE)
    assert region is not None
    assert set(np.flatnonzero(~region.unknown[:MANY_WORDS])) == set(ran)


def test_what_a_program_that_ran_should_have_written_is_judged() -> None:
    made = watch(sample=60)
    made.add(Region("z", 3 * BASE, 8 * MANY_WORDS, is_writable=True))
    made.given = [3 * BASE]
    made.launch((MANY_WORDS, 1, 1))
    ran = []
    for number in range(MANY_WORDS):
        try:
            ran.append(made.turn(number, 0, 0)[0])
        except EnoughError:
            break
        # The second word of each is masked by mistake.
        pair = at(2 * ran[-1], 2 * ran[-1] + 1, base=3 * BASE)
        made.write(pair, np.array([True, False]), 4)
    made.leave()
    region = made.at(3 * BASE)
    assert region is not None
    judged = {word // 2 for word in np.flatnonzero(~region.unknown[: 2 * MANY_WORDS])}
    assert judged == set(ran)
    assert not region.unknown[[2 * one + 1 for one in ran]].any()


def test_a_grid_of_few_programs_runs_whole() -> None:
    for small, ran in ((10_000, HEAD), (0, LEAST)):
        made = Watch(("order",), Patience(sample=40, sampled=0, small=small))
        made.next_schedule()
        made.begin([Region("x", BASE, 4 * WORDS, is_writable=False)])
        made.launch((HEAD, 1, 1))
        seen = []
        for number in range(HEAD):
            try:
                seen.append(made.turn(number, 0, 0)[0])
            except EnoughError:
                break
            for _ in range(8):
                read(made, 0, base=BASE)
        made.leave()
        assert len(seen) == ran
        assert HEAD - 1 in seen, "the last program is in every sample"


def test_what_was_left_out_is_not_read() -> None:
    made = watch(sample=60)
    ran = sampled(made, MANY_WORDS)
    turns(made, (1, 1, 1))
    read(made, ran[0], base=3 * BASE)
    with pytest.raises(SpoiledError):
        read(made, next(w for w in range(MANY_WORDS) if w not in ran), base=3 * BASE)


def test_where_programs_meet_none_is_left_out() -> None:
    made = watch(sample=20)
    made.launch((100, 1, 1))
    for number in range(10):
        made.turn(number, 0, 0)
        meet(made, 0)
    with pytest.raises(SpoiledError):
        made.turn(10, 0, 0)


def test_an_output_that_no_program_of_the_sample_writes_is_unknown() -> None:
    made = watch(sample=20)
    made.given = [2 * BASE]
    made.launch((100, 1, 1))
    for number in range(10):
        made.turn(number, 0, 0)
        read(made, 0, base=BASE)
    with pytest.raises(EnoughError):
        made.turn(10, 0, 0)
    made.leave()
    region, read_only = made.at(2 * BASE), made.at(BASE)
    assert region is not None
    assert region.unknown.all()
    assert read_only is not None
    assert read_only.unknown is None


@pytest.mark.parametrize("size", [1, 2])
def test_narrow_elements_have_marks_of_their_own(size: int) -> None:
    """Neighbours in one word are no race; the same element is, whoever has used the word before."""
    made = watch()
    both(made)
    write(made, 0)
    pointers = elements(8, size=size)
    made.write(pointers, everything(pointers), size)
    made.turn(1, 0, 0)
    beside = elements(9, size=size)
    made.write(beside, everything(beside), size)
    made.read(beside, everything(beside), size)
    with pytest.raises(MemoryFault, match="in no order"):
        made.write(pointers, everything(pointers), size)
    last = elements(4 // size - 1, size=size)
    with pytest.raises(MemoryFault, match="in no order"):
        made.read(last, everything(last), size)
    with pytest.raises(MemoryFault, match="in no order"):
        # As a whole word of which another program wrote a part.
        write(made, 8 * size // 4)


@pytest.mark.parametrize("size", [1, 2])
def test_what_narrow_programs_leave_out_is_known_by_element(size: int) -> None:
    made = watch(sample=60)
    ran = sampled(made, MANY_WORDS, size)
    region = made.at(3 * BASE)
    assert region is not None
    assert 0 < len(ran) < MANY_WORDS
    assert set(np.flatnonzero(~region.unknown[:MANY_WORDS])) == set(ran)


def test_what_was_known_of_a_word_is_known_of_its_halves() -> None:
    region = Region("y", BASE, 10, is_writable=True)
    region.fresh = np.array([True, False, True, True])
    region.divide(2)
    assert region.fresh.tolist() == [True, True, False, False, True, True]
    region.divide(4)
    assert region.word == 2


def test_host_code_sets_parts_of_words() -> None:
    made = watch()
    region = made.at(2 * BASE)
    assert region is not None
    region.fresh = np.ones(region.words, dtype=bool)
    made.mark_written(2 * BASE + 6, 4)
    assert np.flatnonzero(~region.fresh).tolist() == [3, 4]
