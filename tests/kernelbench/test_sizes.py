"""Drawn sizes: few shapes reach every stratum of every axis, and stay small."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from kernelwright.kernelbench.edges import (
    BEHIND,
    LAST_PIECE,
    MIXED_WHOLE,
    OFFSETS,
    POWERS,
    Behind,
    Edge,
    draw_edge,
)
from kernelwright.kernelbench.sizes import (
    ALL_OF_A_ROUND,
    BANDS,
    BEYOND_16_BITS,
    LANES,
    MOST_OF_ALL,
    POWER_OF_2,
    Range,
    draw_bulk,
    draw_sizes,
    is_middling,
    is_telling,
)
from kernelwright.kernelbench.tried import (
    LEAST_MIDDLING,
    MOST_BROAD,
    MOST_MIDDLING,
    MOST_OF_TWO,
    OF_A_PLAN,
    RESIDUES,
    USUAL,
    USUAL_BESIDE,
    WHOLE,
    Odd,
    Tried,
)

SHAPES = 8 * ALL_OF_A_ROUND
EDGES = tuple(itertools.product(POWERS, OFFSETS))
AXES = [("N",), ("M", "N"), ("M", "N", "K")]


def drawn(names: tuple[str, ...], seed: int, count: int = SHAPES) -> list[dict[str, int]]:
    ranges = dict.fromkeys(names, Range())
    sizes = draw_sizes(ranges, dict.fromkeys(names, 300), np.random.default_rng(seed))
    return list(itertools.islice(sizes, count))


@pytest.mark.parametrize("names", AXES[1:])
@pytest.mark.parametrize("seed", range(5))
def test_every_axis_has_every_remainder_and_every_scale(names: tuple[str, ...], seed: int) -> None:
    shapes = drawn(names, seed)
    for name in names:
        lengths = {shape[name] for shape in shapes}
        telling = [
            shape[name] for shape in shapes if is_telling(dict.fromkeys(names, Range()), shape)
        ]
        assert {length % RESIDUES for length in telling} == set(range(RESIDUES))
        assert len({length % 16 for length in (shape[name] for shape in shapes[:56])}) >= 15
        assert {1, 300} <= lengths
        for least, most in ((2, 31), (65, 1023), (1024, 8191), (20_000, BEYOND_16_BITS - 1)):
            assert any(least <= length <= most for length in lengths)
        assert max(lengths) >= BEYOND_16_BITS


@pytest.mark.parametrize("names", [*AXES[1:], ("M", "N", "K", "H")])
@pytest.mark.parametrize("seed", range(5))
def test_long_lengths_have_every_remainder_modulo_8(names: tuple[str, ...], seed: int) -> None:
    shapes = drawn(names, seed)
    for name in names:
        for band in BANDS:
            lengths = [shape[name] for shape in shapes if shape[name] >= band]
            assert {length % LANES for length in lengths} == set(range(LANES))


@pytest.mark.parametrize("names", AXES)
def test_the_first_is_beyond_16_bits_and_all_are_small(names: tuple[str, ...]) -> None:
    for seed in range(10):
        shapes = drawn(names, seed)
        assert max(shapes[0].values()) >= BEYOND_16_BITS
        for shape in shapes:
            assert tuple(shape) == names
            assert min(shape.values()) >= 1
            if is_broad(shape):
                continue
            assert all(a * b <= MOST_OF_TWO for a, b in itertools.combinations(shape.values(), 2))
            most = MOST_MIDDLING if min(shape.values()) >= LEAST_MIDDLING else MOST_OF_ALL
            assert np.prod(list(shape.values())) <= most


def is_broad(shape: dict[str, int]) -> bool:
    *others, second, first = sorted((1, *shape.values()))
    return MOST_BROAD / 3 <= second * first <= MOST_BROAD * 1.5 and max(others, default=0) <= 24


@pytest.mark.parametrize("names", AXES[1:])
def test_each_pair_of_axes_is_broad_in_turn_and_square_now_and_then(names: tuple[str, ...]) -> None:
    tried, rng, odd = Tried(), np.random.default_rng(2), Odd()
    most = dict.fromkeys(names, BEYOND_16_BITS)
    shapes = [tried.next_broad(most, rng, odd) for _ in range(8 * len(names))]
    assert all(is_broad(shape) for shape in shapes)
    for pair in itertools.combinations(names, 2):
        long = [s for s in shapes if min(s[axis] for axis in pair) > 100]
        assert any(s[pair[0]] == s[pair[1]] for s in long)
        # A square one has one remainder, of whichever axis.
        assert len({s[pair[0]] % LANES for s in long}) >= LANES - 2


def test_an_axis_that_is_never_long_is_none_of_two_long_ones_and_whole_as_far_as_it_goes() -> None:
    ranges = {"M": Range(), "H": Range(most=7), "D": Range(most=96)}
    shapes = list(itertools.islice(draw_bulk(ranges, np.random.default_rng(0)), 12))
    assert all(s["M"] >= 256 and s["D"] >= 64 and s["H"] <= 7 for s in shapes)
    assert {(s["M"] % RESIDUES, s["D"] % RESIDUES) for s in shapes[::2]} == {(0, 0)}
    # Where no two are ever long these are all there is.
    short = {"L": Range(most=8), "P": Range(most=32)}
    assert next(draw_bulk(short, np.random.default_rng(0))) == {"L": 8, "P": 32}


def test_beside_two_long_axes_others_are_few_rather_than_those_short() -> None:
    ranges = dict.fromkeys("ABCD", Range())
    for shape in itertools.islice(
        draw_bulk(ranges, np.random.default_rng(0), lambda s: np.prod(list(s.values())) < 1 << 21),
        12,
    ):
        *beside, one, other = sorted(shape.values())
        assert one * other >= 1 << 14, beside


@pytest.mark.parametrize("names", [*AXES[1:], ("M", "N", "K", "H")])
@pytest.mark.parametrize("seed", range(5))
def test_some_are_powers_of_two_along_every_axis(names: tuple[str, ...], seed: int) -> None:
    tried, odd, most = Tried(seed), Odd(), dict.fromkeys(names, BEYOND_16_BITS)
    steps = MOST_OF_ALL if len(names) < 4 else None
    powers = [*WHOLE[0], *WHOLE[1]]
    shapes = [tried.next_whole(most, odd, steps) for _ in range(4 * OF_A_PLAN)]
    assert not any(length & (length - 1) for shape in shapes for length in shape.values())
    for name in names:
        assert {shape[name] for shape in shapes} >= {1 << power for power in powers}
        for start in range(0, 3 * OF_A_PLAN, 7):
            some = {shape[name] for shape in shapes[start : start + OF_A_PLAN]}
            assert some >= {1 << power for power in (WHOLE[0] if len(names) > 2 else powers)}
    vectors = [shape for shape in shapes if min(shape.values()) >= 16]
    assert len(vectors) >= len(shapes) // 3
    assert sum(len(set(shape.values())) > 1 for shape in vectors) >= len(vectors) * 0.8


@pytest.mark.parametrize("names", [*AXES, ("M", "N", "K", "H")])
@pytest.mark.parametrize("seed", range(3))
def test_every_verification_has_the_lengths_that_layers_have(
    names: tuple[str, ...], seed: int
) -> None:
    ranges, own = dict.fromkeys(names, Range()), dict.fromkeys(names, 300)
    steps = MOST_OF_ALL if len(names) < 4 else None
    tried, usual = Tried(seed), {*itertools.chain(*USUAL), *USUAL_BESIDE}
    for count in (SHAPES, 28, SHAPES):  # of a campaign, one after the other
        sizes = draw_sizes(ranges, own, np.random.default_rng(seed), steps, tried)
        shapes = list(itertools.islice(sizes, count))
        for name in names if count == SHAPES else ():
            lengths = {shape[name] for shape in shapes}
            assert lengths >= set(USUAL[0])
            assert len(names) > 2 or lengths >= set(USUAL[1])
            assert len(names) < 2 or len(lengths & set(USUAL_BESIDE)) >= len(USUAL_BESIDE) // 2
        found = sum(usual.issuperset(shape.values()) for shape in shapes)
        assert found >= (OF_A_PLAN * 3 // 4 if count == SHAPES else 2)


@pytest.mark.parametrize("names", AXES[1:])
def test_a_plan_of_few_shapes_has_each_kind(names: tuple[str, ...]) -> None:
    few = drawn(names, 1, 28)
    leading, others = few[:16], few[16:]
    assert max(leading[0].values()) >= BEYOND_16_BITS
    usual = {*itertools.chain(*USUAL), *USUAL_BESIDE}
    assert sum(usual.issuperset(shape.values()) for shape in others) == 2
    assert sum(not any(n & (n - 1) for n in shape.values()) for shape in others) >= 2
    assert any(is_broad(shape) for shape in others)
    assert any(min(shape.values()) == 1 for shape in others)
    ranges = dict.fromkeys(names, Range())
    assert sum(is_telling(ranges, shape) for shape in others) >= 4
    assert sum(is_middling(ranges, shape) for shape in others) >= 2


def test_a_usual_length_is_no_longer_than_its_axis() -> None:
    tried, odd = Tried(1), Odd()
    shapes = [tried.next_usual({"M": 70_000, "H": 16}, odd) for _ in range(32)]
    assert max(shape["H"] for shape in shapes) == 16
    assert {shape["M"] for shape in shapes} >= set(USUAL[0])


@pytest.mark.parametrize("names", AXES[1:])
def test_each_axis_is_1_beside_each_long_one_with_every_remainder_modulo_8(
    names: tuple[str, ...],
) -> None:
    tried, rng, odd = Tried(), np.random.default_rng(4), Odd()
    most = dict.fromkeys(names, BEYOND_16_BITS)
    pairs = list(itertools.permutations(names, 2))
    shapes = [tried.next_thin(most, rng, odd) for _ in range(LANES * len(pairs))]
    for thin, long in pairs:
        lengths = [s[long] for s in shapes if s[thin] == 1 and s[long] > 100]
        assert {length % LANES for length in lengths} == set(range(LANES))
        assert len({length.bit_length() for length in lengths}) >= 3


@pytest.mark.parametrize("most", [700, 3969])
def test_a_short_axis_has_edges_that_it_can_have(most: int) -> None:
    sizes = draw_sizes({"M": Range(most=most)}, {"M": 300}, np.random.default_rng(1))
    lengths = [shape["M"] for shape in itertools.islice(sizes, SHAPES)]
    assert max(lengths) <= most
    # Six of each 41 shapes are at an edge, and the end of the axis is none.
    assert lengths.count(most) <= SHAPES // 20
    behind = [length for length in lengths if length > 127 and (length + 1) % 128 <= 1 + LAST_PIECE]
    assert len(behind) >= SHAPES // 7


@pytest.mark.parametrize("names", AXES[1:])
@pytest.mark.parametrize("seed", range(3))
def test_every_axis_has_every_remainder_modulo_odd_numbers(
    names: tuple[str, ...], seed: int
) -> None:
    shapes = drawn(names, seed)
    for name, modulus in itertools.product(names, range(3, 32, 2)):
        assert {shape[name] % modulus for shape in shapes} == set(range(modulus)), modulus


@pytest.mark.parametrize("names", AXES[1:])
def test_some_are_beyond_128_in_every_axis_with_every_remainder_modulo_32(
    names: tuple[str, ...],
) -> None:
    ranges = dict.fromkeys(names, Range())
    for seed in range(5):
        assert sum(is_middling(ranges, shape) for shape in drawn(names, seed)) >= 30
        tried, rng, odd = Tried(seed), np.random.default_rng(seed), Odd()
        most = dict.fromkeys(names, BEYOND_16_BITS)
        middling = [tried.next_middling(most, rng, odd) for _ in range(32)]
        for name in names:
            assert {shape[name] % 32 for shape in middling} == set(range(32))
            for one in range(len(middling) - LANES + 1):
                some = middling[one : one + LANES]
                assert len({shape[name] % LANES for shape in some}) == LANES


def test_seeds_draw_different_sizes_and_one_seed_the_same() -> None:
    assert drawn(("M", "N"), 1) == drawn(("M", "N"), 1)
    first, second = ({tuple(s.values()) for s in drawn(("M", "N"), seed)} for seed in (1, 2))
    # A few are (1, something short), and there are not many powers of two or usual lengths.
    known = {*itertools.chain(*USUAL), *USUAL_BESIDE, *(1 << power for power in range(17))}
    assert len([one for one in first & second if not known.issuperset(one)]) < 15


def test_a_range_is_kept_and_a_choice_is_one_of_its_values() -> None:
    ranges = {"M": Range(), "H": Range(most=16), "reduce": Range(choices=(0, 1))}
    sizes = draw_sizes(ranges, {"M": 9, "H": 4, "reduce": 0}, np.random.default_rng(3))
    shapes = list(itertools.islice(sizes, SHAPES))
    assert {shape["H"] for shape in shapes} == set(range(1, 17))
    assert {shape["reduce"] for shape in shapes} == {0, 1}


@pytest.mark.parametrize(("power", "offset"), EDGES)
def test_an_edge_lies_beside_a_multiple_of_its_tile(power: int, offset: int) -> None:
    rng = np.random.default_rng(0)
    for behind in Behind:
        edge = Edge(power, offset, behind)
        tile = MIXED_WHOLE[0] if behind is Behind.MIXED else 1 << power
        over = {(draw_edge(edge, rng) + 1) % tile - 1 for _ in range(200)}
        assert over == ({offset} if offset < 2 else set(range(2, LAST_PIECE + 1)))


def test_an_edge_behind_many_tiles_is_one_of_the_widest_tile_as_far_as_there_is_room() -> None:
    rng, edge = np.random.default_rng(0), Edge(7, 1, Behind.MANY)
    lengths = Counter(draw_edge(edge, rng) for _ in range(300))
    assert list(dict(lengths.most_common())) == [3 * 4096 + 1, 2 * 4096 + 1, 4096 + 1]
    assert max(draw_edge(edge, rng, 1000) for _ in range(300)) == 7 * 128 + 1
    assert draw_edge(Edge(12, 0, Behind.ONE), rng, 1000) == 4096


def test_a_mixed_edge_is_one_of_tiles_that_are_no_powers_of_two_where_there_is_room() -> None:
    rng, edge = np.random.default_rng(0), Edge(12, 1, Behind.MIXED)
    for tile in (96, 120, 144, 160, 240, 256, 320, 384, 640, 768):
        assert draw_edge(edge, rng) % tile == 1
    for whole in MIXED_WHOLE:
        assert draw_edge(edge, rng, whole + 1) == whole + 1
        assert not any(whole % tile for tile in (96, 120, 160, 240, 480))
    assert draw_edge(edge, rng, 1024) == 961
    assert {draw_edge(Edge(7, 1, Behind.MIXED), rng, 400) for _ in range(300)} == {129, 257, 385}


@pytest.mark.parametrize("axes", [3, 4])
def test_a_plan_has_every_offset_behind_many_tiles_and_behind_others(axes: int) -> None:
    for seed in range(20):
        tried = Tried(seed)
        # As many as a full plan has for each of so many axes.
        edges = [tried.next_edge("M") for _ in range(48 // axes)]
        met = {(edge.offset, edge.behind) for edge in edges}
        assert {offset for offset, behind in met if behind is Behind.MANY} == set(OFFSETS)
        mixed = {offset for offset, behind in met if behind is Behind.MIXED}
        assert mixed == set(OFFSETS) if axes == 3 else len(mixed) >= 3


def drawn_in_turn(names: tuple[str, ...], seed: int, counts: list[int]) -> list[dict[str, int]]:
    """The shapes of several evaluations of a campaign."""
    ranges, own, tried = dict.fromkeys(names, Range()), dict.fromkeys(names, 300), Tried()
    return [
        shape
        for number, count in enumerate(counts)
        for shape in itertools.islice(
            draw_sizes(ranges, own, np.random.default_rng([seed, number]), tried=tried), count
        )
    ]


@pytest.mark.parametrize("seed", range(5))
def test_two_verifications_of_a_campaign_try_every_edge_of_every_axis(seed: int) -> None:
    shapes = drawn_in_turn(("M", "N", "K"), seed, [SHAPES, SHAPES])
    for name in ("M", "N", "K"):
        lengths = {shape[name] for shape in shapes if shape[name] >= 127}
        for power, offset in EDGES:
            pieces = range(offset, LAST_PIECE + 1) if offset > 1 else (offset,)
            assert any(
                (length - piece) % (1 << power) == 0 for length in lengths for piece in pieces
            )


def test_no_edge_comes_again_before_all_others_came() -> None:
    tried = Tried()
    for axis in ("M", "N"):
        edges = [tried.next_edge(axis) for _ in range(len(EDGES) * len(BEHIND))]
        for round_ in (edges[at : at + 24] for at in range(0, len(edges), 24)):
            assert {(edge.power, edge.offset) for edge in round_} == set(EDGES)
        assert len({(edge.power, edge.offset, edge.behind) for edge in edges}) == 4 * len(EDGES)
        for four in (edges[at : at + 4] for at in range(0, len(edges), 4)):
            assert {edge.offset for edge in four} == set(OFFSETS)
    orders = {tuple(Tried().next_edge("M") for _ in range(3)) for _ in range(20)}
    assert len(orders) > 1


def test_what_was_tried_can_be_told_and_taken_up_again() -> None:
    names, own = ("M", "N"), {"M": 300, "N": 300}
    ranges, tried = dict.fromkeys(names, Range()), Tried()
    list(itertools.islice(draw_sizes(ranges, own, np.random.default_rng(1), tried=tried), 40))
    again = Tried.from_text(tried.text)
    assert again.text == tried.text
    assert Tried.from_text(Tried(7).text).text == Tried(7).text
    one, other = (
        list(itertools.islice(draw_sizes(ranges, own, np.random.default_rng(2), tried=each), 60))
        for each in (tried, again)
    )
    assert one == other
    assert again.text == tried.text


@pytest.mark.parametrize("names", AXES[1:])
def test_every_verification_of_a_campaign_has_all_that_one_alone_has(
    names: tuple[str, ...],
) -> None:
    shapes = drawn_in_turn(names, 3, [16, 16, SHAPES, 16, SHAPES])
    ranges = dict.fromkeys(names, Range())
    for one in (shapes[32 : 32 + SHAPES], shapes[-SHAPES:]):
        assert max(one[0].values()) >= BEYOND_16_BITS
        for name in names:
            telling = {shape[name] % RESIDUES for shape in one if is_telling(ranges, shape)}
            assert telling == set(range(RESIDUES))
            for band in BANDS:
                long = {shape[name] % LANES for shape in one if shape[name] >= band}
                assert long == set(range(LANES))


def test_lengths_of_one_kind_are_powers_of_two_and_reach_far() -> None:
    ranges = {"M": Range(), "N": POWER_OF_2}
    drawn = list(
        itertools.islice(draw_sizes(ranges, {"M": 300, "N": 4096}, np.random.default_rng(4)), 200)
    )
    drawn += itertools.islice(draw_bulk(ranges, np.random.default_rng(5)), 10)
    found = {sizes["N"] for sizes in drawn}
    assert all(length & (length - 1) == 0 for length in found)
    assert {1, 2, POWER_OF_2.most} <= found
    assert len(found) >= 12
    assert len({sizes["M"] for sizes in drawn}) > 100
