"""The model puts pairs of kernels in the order that they are known to have, by a clear margin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders import toolchain
from kernelwright.tests.sampling import some_of
from kernelwright.tests.verifier.order.known import (
    MARGIN,
    Pair,
    open_emulated,
    profile,
    read_pairs,
    read_record,
)
from kernelwright.verifier.stands.emulated import EmulatedStand

PAIRS = read_pairs()
OFTEN = (
    "tensor cores for bfloat16",
    "tensor cores for TF32, in Triton",
    "smaller blocks where a product is small",
)
"""One of each kind; the others in `make test-all`."""


class Stands:
    """One for each problem and language."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._open: dict[tuple[str, str], EmulatedStand] = {}

    def find(self, pair: Pair) -> EmulatedStand:
        key = pair.slow.problem, pair.slow.language
        if key not in self._open:
            self._open[key] = self._stack.enter_context(open_emulated(*key, self._folder))
        return self._open[key]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def stands(shared_cache: Path) -> Iterator[Stands]:
    try:
        toolchain.find_nvrtc()
        toolchain.find_nvdisasm()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    opened = Stands(shared_cache)
    yield opened
    opened.close()


def modelled(stand: EmulatedStand, pair: Pair) -> tuple[float, float]:
    slow, fast = (profile(stand, kernel).get("modelled_us") for kernel in (pair.slow, pair.fast))
    assert slow is not None
    assert fast is not None
    return slow, fast


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", some_of(PAIRS, lambda pair: pair.name in OFTEN), ids=lambda pair: pair.name
)
def test_the_slower_one_is_modelled_slower(stands: Stands, pair: Pair) -> None:
    slow, fast = modelled(stands.find(pair), pair)
    assert (slow >= MARGIN * fast) == (not pair.missed), (slow, fast)


@pytest.mark.heavy
@pytest.mark.slow
def test_a_block_of_one_thread_is_told_so(stands: Stands) -> None:
    (pair,) = (each for each in PAIRS if "not of one" in each.name)
    found = profile(stands.find(pair), pair.slow)
    assert found.get("block_threads") == 1
    assert (found.get("occupancy") or 1.0) <= 0.5
    (remark, *_) = found.remarks
    assert "blocks of 1 threads" in remark
    slow, fast = modelled(stands.find(pair), pair)
    assert slow > 10 * fast


def test_the_table_has_enough_of_each_kind() -> None:
    told = [pair for pair in PAIRS if not pair.missed]
    assert len(told) >= 12
    assert sum(pair.slow.language == "triton" for pair in told) >= 3
    assert sum("tensor cores" in pair.name for pair in told) >= 4


def test_what_is_said_to_be_measured_is_in_the_record() -> None:
    """And clearly: by more than screenings of one kernel differ."""
    assert read_record()
    for pair in PAIRS:
        slow, fast = pair.slow.measured_us, pair.fast.measured_us
        if pair.source == "measured on H200":
            assert slow is not None, pair.name
            assert fast is not None, pair.name
            assert slow >= 1.25 * fast, pair.name
