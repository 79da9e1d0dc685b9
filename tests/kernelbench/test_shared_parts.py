"""What problems share: blocks of rows, factors of products, single elements, softmaxes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench import dense
from kernelwright.kernelbench.dense import (
    BLOCK_ELEMENTS,
    draw_rows,
    expect_by_rows,
    sum_products,
    sum_rows,
    thin_mirrored,
)
from kernelwright.kernelbench.exponentials import OFFSETS, draw_overflowing, softmax_of
from kernelwright.kernelbench.families import (
    DENORMAL_SHARE,
    KEPT,
    LONG,
    PROBE_NONZEROS,
    blemish,
    denormal_rows,
    draw_factors,
    single_out,
)
from kernelwright.kernelbench.problem import Family, Pair, Workload
from kernelwright.kernelbench.segments import depths, row_sums
from kernelwright.kernelbench.sparse import (
    multiply,
    pattern_of,
    row_maxima,
    row_numbers,
    segment_maxima,
    structure_from,
)
from kernelwright.kernelbench.standins import read_law


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("shape", [(1, 7), (301, 1000), (3, 2 * BLOCK_ELEMENTS)])
def test_an_answer_by_rows_has_every_row_once(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    a, b = (rng.standard_normal(shape, np.float32) for _ in range(2))
    before, seen = a.copy(), []

    def answer(left: np.ndarray, right: np.ndarray) -> Pair:
        assert (left.dtype, right.dtype) == (np.float64, np.float64)
        seen.append(left.size)
        left -= right
        return left, np.abs(left)

    found = expect_by_rows(answer, 3.0, a, b)
    right = a.astype(np.float64) - b
    assert np.array_equal(found.value, right)
    assert np.array_equal(found.scale, np.abs(right))
    assert np.array_equal(a, before), "answers may change what they are given"
    assert (sum(seen), found.terms) == (a.size, 3.0)
    assert len(seen) == 1 or max(seen) <= max(BLOCK_ELEMENTS, shape[1])


def test_vectors_are_given_as_a_whole(rng: np.random.Generator) -> None:
    x, gain = rng.standard_normal((301, 1000), np.float32), rng.standard_normal(1000, np.float32)

    def answer(rows: np.ndarray, whole: np.ndarray) -> Pair:
        assert whole.dtype == np.float64
        return rows * whole, np.abs(rows)

    found = expect_by_rows(answer, 1.0, x, gain)
    assert np.array_equal(found.value, x.astype(np.float64) * gain)


def test_sums_of_rows_are_columns(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 40, 9))
    np.testing.assert_allclose(sum_rows(a)[:, 0], [sum(row) for row in a])
    np.testing.assert_allclose(sum_products(a, b)[:, 0], (a * b).sum(1))


def test_one_element_of_each_row_is_singled_out(rng: np.random.Generator) -> None:
    x = rng.standard_normal((500, 13), np.float32)
    before, places = x.copy(), []

    def change(value: np.ndarray, place: np.ndarray) -> np.ndarray:
        assert value.shape == place.shape == (500, 1)
        assert np.array_equal(value, np.take_along_axis(before, place, 1))
        places.append(place)
        return value + 1

    single_out(x, rng, change)
    rows, columns = np.nonzero(x != before)
    assert np.array_equal(rows, np.arange(500))
    assert np.array_equal(columns, places[0][:, 0])
    assert set(columns) == set(range(13))


def test_factors_of_a_product_are_those_of_their_family(rng: np.random.Generator) -> None:
    left, right, live = (600, 40), (40, 50), np.arange(7, 600, 5)

    def draw(family: Family) -> Pair:
        return draw_factors(family, left, right, rng, varies=(0, 1), live=live)

    probe, dense = draw(Family.PROBE)
    assert (np.count_nonzero(probe, 1) <= PROBE_NONZEROS).all()
    assert (dense >= 1).all()
    small, below = draw(Family.DENORMAL)
    is_denormal = (np.abs(small) < 2.0**-126).all(1)
    assert 1 <= is_denormal.sum() <= len(live) // DENORMAL_SHARE
    assert np.isin(np.flatnonzero(is_denormal), live).all()
    assert ((np.abs(below) >= 0.5) & (np.abs(below) < 1)).all()
    constant, columns = draw(Family.CONSTANT)
    assert (constant == constant[:, :1]).all()
    assert (columns == columns[:1]).all()
    assert len(np.unique(constant)) > 1
    assert all(np.isfinite(each).all() for each in draw(Family.NONFINITE))


def test_where_no_row_is_live_none_is_denormal(rng: np.random.Generator) -> None:
    assert not denormal_rows(9, rng, np.zeros(0, np.int64)).any()
    assert denormal_rows(9, rng, np.array([4])).tolist() == [at == 4 for at in range(9)]
    assert denormal_rows(9, rng).sum() == 1


def test_only_nonfinite_has_blemishes(rng: np.random.Generator) -> None:
    x = np.zeros((90, 8), np.float32)
    blemish(Family.LARGE, x, rng)
    blemish(Family.NONFINITE, x, rng, places=np.zeros(0, np.int64))
    assert np.isfinite(x).all()
    blemish(Family.NONFINITE, x, rng, (np.nan,), places=np.array([3, 5]))
    spoilt = np.flatnonzero(np.isnan(x).any(1))
    assert len(spoilt)
    assert np.isin(spoilt, (3, 5)).all()


def test_a_softmax_over_a_pattern_is_the_one_over_its_rows(rng: np.random.Generator) -> None:
    generator, _ = read_law("hub 60")
    pattern = pattern_of(Workload(name="a", kind="tiny", generator=generator))
    structure = structure_from(pattern, {}, names=("M", "K", "nnz"))
    rows = row_numbers(structure)
    x = rng.standard_normal(pattern.nnz) * 9
    x[rng.integers(len(x), size=40)] -= [100, 360, 720, 2000] * 10
    lengths = np.bincount(rows, minlength=pattern.rows)[rows].astype(float)
    value, scale = softmax_of(depths(structure, x), x, lengths, *row_sums(structure))
    for row in np.unique(rows):
        own = x[rows == row][None]
        alone = softmax_of(own.max() - own, own, float(own.size), sum_rows, sum_products)
        np.testing.assert_allclose(value[rows == row], alone[0][0], rtol=1e-12)
        np.testing.assert_allclose(scale[rows == row], alone[1][0], rtol=1e-12)
        np.testing.assert_allclose(alone[0], np.exp(own) / np.exp(own).sum(), 1e-12, 1e-150)


def test_products_and_maxima_over_a_pattern_are_those_of_its_rows(
    rng: np.random.Generator,
) -> None:
    drawn = {"law": "hub", "n": 60, "nnz": 240}
    pattern = pattern_of(Workload(name="w", axes={}, kind="tiny", generator=drawn))
    structure = structure_from(pattern, {"N": 5}, names=("M", "K", "nnz", "N"))
    indptr, indices = structure.arrays["indptr"], structure.arrays["indices"]
    entries = rng.standard_normal(len(indices), np.float32)
    dense = rng.standard_normal((60, 5), np.float32)
    products = entries[:, None] * dense[indices]
    value, scale = multiply(structure, entries, dense, 60)
    greatest, wide = row_maxima(structure, entries, dense), segment_maxima(structure, products)
    empty = 0
    for row, (first, last) in enumerate(itertools.pairwise(indptr)):
        part = products[first:last].astype(np.float64)
        np.testing.assert_allclose(value[row], part.sum(0), atol=1e-5)
        np.testing.assert_allclose(scale[row], np.abs(part).sum(0), rtol=1e-5)
        most = part.max(0) if len(part) else np.zeros(5)
        assert np.array_equal(greatest[row], most)
        assert np.array_equal(wide[row], most)
        empty += not len(part)
    assert empty
    assert (value.dtype, greatest.dtype) == (np.float64, np.float32)


@pytest.mark.parametrize("lanes", [1, 4])
def test_large_logits_overflow_without_their_maximum(lanes: int, rng: np.random.Generator) -> None:
    rows, count = 64, 30
    shift = np.repeat(rng.choice(OFFSETS, (rows, 1)), count, 0)
    places, lengths = np.tile(np.arange(count), rows)[:, None], np.full(rows, count)
    shape = (rows * count, lanes)
    x = draw_overflowing(shape, shift, places, count, lengths, rng, lanes=lanes)
    greatest = x.reshape(rows, count, lanes).max(1)
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(greatest)).mean() > 0.5
    # A peak is far above all others; some rows have none.
    is_peak = greatest - np.sort(x.reshape(rows, count, lanes), 1)[:, -2] > 500
    assert 0.2 < is_peak.mean() < 0.8


def test_thinned_long_rows_have_the_mean_0(rng: np.random.Generator) -> None:
    x = rng.random((3, LONG + 1), np.float32) + 1
    short, normal = x[:, :LONG].copy(), x.copy()
    thin_mirrored(Family.UNIFORM, x, rng)
    kept = np.count_nonzero(x.any(0))
    assert KEPT / 2 < kept < 2 * KEPT
    assert kept % 2 == 0
    assert np.array_equal(np.sort(x, 1), -np.sort(-x, 1)[:, ::-1])
    np.testing.assert_allclose(x.sum(1, dtype=np.float64), 0, atol=1e-9)
    for family, array in ((Family.UNIFORM, short), (Family.NORMAL, normal)):
        before = array.copy()
        thin_mirrored(family, array, rng)
        assert np.array_equal(array, before)


def test_rows_of_a_probe_have_few_numbers(rng: np.random.Generator) -> None:
    assert (np.count_nonzero(draw_rows(Family.PROBE, (50, 40), rng, 1), axis=1) == 1).all()
    few = np.count_nonzero(draw_rows(Family.PROBE, (50, 40), rng), axis=1)
    assert (few.min() >= 1, few.max()) == (True, PROBE_NONZEROS)
    constant = draw_rows(Family.CONSTANT, (50, 40), rng)
    assert (constant == constant[:, :1]).all()
    assert len(np.unique(constant)) > 1


def test_a_dense_product_has_the_sizes_of_its_terms(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((3, 5), np.float32), rng.standard_normal((5, 4), np.float32)
    value, scale = dense.multiply(a, b)
    terms = a[:, :, None].astype(np.float64) * b
    assert (value.dtype, scale.dtype) == (np.float64, np.float64)
    np.testing.assert_allclose(value, terms.sum(1), rtol=1e-12)
    np.testing.assert_allclose(scale, np.abs(terms).sum(1), rtol=1e-6)
