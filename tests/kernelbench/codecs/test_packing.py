"""Packing: every code at every place, orders as people's formats have them, and clear refusals."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import (
    INT4,
    UINT4,
    Integers,
    Layout,
    Order,
    codes_of,
    elements_of,
    pack,
    unpack,
)
from kernelwright.kernelbench.dtypes import FLOAT4_E2M1FN

LAYOUTS = [
    Layout(Integers(bits, is_signed), order, word_bits)
    for bits in (2, 3, 4, 5, 6, 8)
    for is_signed in (False, True)
    for order in Order
    for word_bits in (8, 16, 32)
]


def name_of(layout: Layout) -> str:
    return f"{layout.codes}-{layout.word_bits}-{layout.order}"


@pytest.mark.parametrize("layout", LAYOUTS, ids=name_of)
def test_every_code_at_every_place(layout: Layout) -> None:
    """Against whole numbers of any length, in which the codes are digits."""
    kind, count = layout.codes, layout.group_codes
    rng = np.random.default_rng(layout.word_bits)
    every = np.arange(kind.lowest, kind.highest + 1)
    # Row r is rotated by r: each code stands at each place once.
    rows = np.tile(every, -(-count // len(every)))[:count]
    codes = np.array([[every[(at + row) % len(every)] for at in rows] for row in every])
    codes = np.concatenate([codes, rng.integers(kind.lowest, kind.highest + 1, (20, count))])
    packed = pack(codes, layout)
    assert packed.shape == (len(codes), layout.group_words)
    assert packed.dtype == layout.word
    for row, words in zip(codes.tolist(), packed.tolist(), strict=True):
        digits = [code % (1 << kind.bits) for code in row]
        if layout.order is Order.HIGH_FIRST:
            digits, words = digits[::-1], words[::-1]
        number = sum(digit << (kind.bits * at) for at, digit in enumerate(digits))
        assert number == sum(word << (layout.word_bits * at) for at, word in enumerate(words))
    back = unpack(packed, layout)
    assert back.dtype == kind.host
    assert np.array_equal(back, codes)


def test_groups_are_as_long_as_their_words_need() -> None:
    wanted = {
        Layout(UINT4): (2, 1),
        Layout(Integers(2)): (4, 1),
        Layout(Integers(3)): (8, 3),
        Layout(Integers(3), word_bits=32): (32, 3),
        Layout(Integers(6)): (4, 3),
        Layout(UINT4, word_bits=32): (8, 1),
    }
    assert {each: (each.group_codes, each.group_words) for each in wanted} == wanted


def test_nibbles_by_hand() -> None:
    codes = np.array([0x1, 0x2, 0xA, 0xF])
    assert pack(codes, Layout(UINT4)).tolist() == [0x21, 0xFA]
    assert pack(codes, Layout(UINT4, Order.HIGH_FIRST)).tolist() == [0x12, 0xAF]
    assert pack(np.array([-8, 7, -1, 0]), Layout(INT4)).tolist() == [0x78, 0x0F]
    pairs = np.array([1, 2, 3, 0])
    assert pack(pairs, Layout(Integers(2, False))).tolist() == [0b00_11_10_01]
    assert pack(pairs, Layout(Integers(2, False), Order.HIGH_FIRST)).tolist() == [0b01_10_11_00]


def test_three_bits_in_words_as_gptq_has_them() -> None:
    """Ten codes in a word, the eleventh across two, as the shifts of its kernels say."""
    codes = np.random.default_rng(1).integers(0, 8, 32).tolist()
    first = sum(codes[at] << (3 * at) for at in range(10)) | (codes[10] & 3) << 30
    second = codes[10] >> 2 | sum(codes[11 + at] << (3 * at + 1) for at in range(10))
    second |= (codes[21] & 1) << 31
    third = codes[21] >> 1 | sum(codes[22 + at] << (3 * at + 2) for at in range(10))
    packed = pack(np.array(codes), Layout(Integers(3, False), word_bits=32))
    assert packed.tolist() == [first, second, third]


def test_six_bits_in_three_bytes_by_hand() -> None:
    codes = np.array([0b000001, 0b100010, 0b110011, 0b111100])
    stream = "111100110011100010000001"
    low = [int(stream[at : at + 8], 2) for at in (16, 8, 0)]
    assert pack(codes, Layout(Integers(6, False))).tolist() == low


def test_four_bit_floats_two_to_a_byte() -> None:
    elements = elements_of(np.arange(16, dtype=np.uint8), FLOAT4_E2M1FN)
    packed = pack(codes_of(elements), Layout(UINT4))
    assert packed.tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
    back = elements_of(unpack(packed, Layout(UINT4)), FLOAT4_E2M1FN)
    assert np.array_equal(codes_of(back), codes_of(elements))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LAYOUTS), st.integers(0, 3), st.integers(0, 4), st.randoms())
def test_round_trips_of_any_shape(
    layout: Layout, rows: int, groups: int, draw: random.Random
) -> None:
    low, high = layout.codes.lowest, layout.codes.highest
    shape = (rows, groups * layout.group_codes)
    codes = np.random.default_rng(draw.getrandbits(32)).integers(low, high + 1, shape)
    packed = pack(codes, layout)
    assert packed.size * layout.word_bits == codes.size * layout.codes.bits
    assert np.array_equal(unpack(packed, layout), codes)
    assert np.array_equal(unpack(np.asfortranarray(packed), layout), codes)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"code 16 at \(0, 1\) is no uint4") as caught:
        pack(np.array([[3, 16]]), Layout(UINT4))
    assert caught.value.hint == "codes are 0 to 15"
    with pytest.raises(UsageError, match=r"code -9 at \(0,\) is no int4"):
        pack(np.array([-9, 0]), Layout(INT4))
    with pytest.raises(UsageError, match=r"shape \(2, 3\) is no multiple of 2") as caught:
        pack(np.zeros((2, 3), int), Layout(UINT4))
    assert caught.value.hint == "pad it to 4"
    with pytest.raises(UsageError, match="are float64"):
        pack(np.zeros(2), Layout(UINT4))
    with pytest.raises(UsageError, match=r"shape \(4,\) is no multiple of 3"):
        unpack(np.zeros(4, np.uint8), Layout(Integers(6)))
    with pytest.raises(UsageError, match="words of 32 bits are uint8"):
        unpack(np.zeros(3, np.uint8), Layout(Integers(3), word_bits=32))
    with pytest.raises(UsageError, match=r"shape \(\)"):
        pack(np.array(1), Layout(UINT4))
    with pytest.raises(UsageError, match="no int1 of 1 bits"):
        Integers(1)
    with pytest.raises(UsageError, match="words of 64 bits"):
        Layout(UINT4, word_bits=64)
