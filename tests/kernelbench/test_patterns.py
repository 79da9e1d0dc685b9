"""Drawn patterns: valid CSR of the sizes asked for, by mixtures of row lengths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench.edges import LAST_PIECE, MIXED_WHOLE, Behind, Edge
from kernelwright.kernelbench.graphs import Pattern
from kernelwright.kernelbench.patterns import (
    LAWS,
    crowded_pattern,
    draw_pattern,
    laws,
    wide_pattern,
)
from kernelwright.kernelbench.sizes import BEYOND_16_BITS
from kernelwright.kernelbench.tried import RESIDUES

SIZES = [(1, 1, 1), (1, 90, 17), (300, 5, 3), (4097, 70, 64), (40, 9000, 8193), (2, 3, 50_000)]


def assert_is_csr(pattern: Pattern) -> None:
    assert pattern.indptr[0] == 0
    assert pattern.indptr[-1] == pattern.nnz > 0
    assert (np.diff(pattern.indptr) >= 0).all()
    assert pattern.indices.min() >= 0
    assert pattern.indices.max() < pattern.cols
    starts = np.zeros(pattern.nnz + 1, bool)
    starts[pattern.indptr] = True
    assert ((np.diff(pattern.indices) > 0) | starts[1:-1]).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("rows", "cols", "longest"), SIZES)
def test_a_pattern_is_valid_and_has_the_longest_row(law, rows, cols, longest) -> None:
    for seed in range(5):
        found = draw_pattern(rows, cols, longest, law, np.random.default_rng(seed))
        assert_is_csr(found)
        assert found.rows == rows
        assert max(cols, longest) <= found.cols < max(cols + 1, longest + RESIDUES)
        assert found.cols % RESIDUES == cols % RESIDUES
        assert longest in np.diff(found.indptr)


@pytest.mark.parametrize("offset", [-1, 0, 1, 2])
@pytest.mark.parametrize(
    ("power", "behind"), [(7, Behind.ONE), (9, Behind.ANY), (8, Behind.MANY), (8, Behind.MIXED)]
)
def test_the_entries_of_a_pattern_end_at_an_edge(power: int, behind: Behind, offset: int) -> None:
    end, ended = Edge(power, offset, behind), 0
    for seed in range(30):
        law = LAWS[seed % len(LAWS)]
        rng = np.random.default_rng(seed)
        found = draw_pattern(3000, 500, 400, law, rng, end=end)
        assert_is_csr(found)
        assert 400 in np.diff(found.indptr)
        wider = {Behind.MANY: 1 << 12, Behind.MIXED: MIXED_WHOLE[-1]}.get(behind, 1 << power)
        tile = wider if found.nnz > 2 * wider else 1 << power
        wanted = range(2, LAST_PIECE + 1) if offset > 1 else [offset % tile]
        ended += found.nnz % tile in wanted
    # Laws with few entries in short rows have none to give.
    assert ended >= 24


def test_a_pattern_without_short_rows_keeps_its_entries() -> None:
    end = Edge(7, 1, Behind.ONE)
    found = draw_pattern(1, 500, 400, LAWS[0], np.random.default_rng(0), end=end)
    assert found.nnz == 400


@pytest.mark.parametrize("has_long_row", [True, False])
def test_a_wide_pattern_is_valid(has_long_row: bool) -> None:
    rng = np.random.default_rng(2)
    found = wide_pattern(3, 9, 69_000, rng, has_long_row=has_long_row)
    assert_is_csr(found)
    assert min(found.rows, found.cols) >= BEYOND_16_BITS
    assert (69_000 in np.diff(found.indptr)) == has_long_row
    assert wide_pattern(70_001, 9, 9, rng, has_long_row=has_long_row).rows == 70_001


@pytest.mark.parametrize("rows", [200, 899])
def test_a_crowded_pattern_is_valid_and_has_hardly_more_entries_than_asked(rows: int) -> None:
    found = crowded_pattern(rows, 33_000, np.random.default_rng(rows))
    assert_is_csr(found)
    assert 33_000 <= found.nnz <= 33_000 + 3 * rows
    assert np.diff(found.indptr).min() > 0


def test_entries_are_bounded() -> None:
    found = draw_pattern(900, 200, 40, LAWS[0], np.random.default_rng(1), entries=1000)
    assert 40 <= found.nnz <= 1000


def test_where_entries_run_out_the_last_rows_have_some_in_most_of_the_patterns() -> None:
    rng = np.random.default_rng(7)
    found = [draw_pattern(9000, 200, 40, law, rng, 8000) for law in (*LAWS[:3], LAWS[5]) * 10]
    ended = sum(np.diff(one.indptr)[-8:].any() for one in found)
    assert 24 <= ended <= 38


def test_what_is_drawn_over_the_laws_has_what_kernels_stumble_over() -> None:
    rng = np.random.default_rng(4)
    found = [draw_pattern(200, 90, 60, law, rng) for law in itertools.islice(laws(rng), len(LAWS))]
    lengths = [np.diff(pattern.indptr) for pattern in found]
    assert any(set(one % RESIDUES) >= set(range(60)) for one in lengths)
    assert any(not one[:1].any() and not one[-1:].any() for one in lengths)
    assert any(np.median(one) == 0 for one in lengths)
    assert any(has_equal_rows(pattern) for pattern in found)
    assert any(len(set(one)) <= 2 for one in lengths)


def has_equal_rows(pattern: Pattern) -> bool:
    rows = np.split(pattern.indices, pattern.indptr[1:-1])
    return any(len(a) > 2 and np.array_equal(a, b) for a, b in itertools.pairwise(rows))


def test_long_rows_come_several_at_once() -> None:
    found = draw_pattern(50, 9000, 5000, LAWS[0], np.random.default_rng(0))
    assert (np.diff(found.indptr) > 128).sum() >= 4
