"""Tensors of bytes: what they stand for, and what a file may declare of them."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import (
    INT4,
    UINT4,
    Layout,
    Overflow,
    codes_of,
    elements_of,
    encode,
    pack,
    unpack,
)
from kernelwright.kernelbench.coded import CODECS, decode_all, draw_codes
from kernelwright.kernelbench.declaration import read_declaration
from kernelwright.kernelbench.declared import problem_of
from kernelwright.kernelbench.dtypes import DType
from kernelwright.kernelbench.problem import Family, Structure

BYTES = np.arange(256, dtype=np.uint8)
FLOATS = [each for each in CODECS.values() if isinstance(each.numbers, DType)]

OWN = """PROBLEM = {"title": "Twice", "definition": "y = 2 x", "source": "mine",
    "axes": {"H": "bytes"}, "flops": "4*H",
    "inputs": {"x": "uint8[H]: in codes", "s": "float32[2*H]"},
    "outputs": {"y": "float32[2*H]: twice"},
    "codes": {"x": "int4"},
    "workloads": {"realistic": {"64": "usual"}}}
"""


@pytest.mark.parametrize("codec", CODECS.values(), ids=lambda each: each.name)
def test_every_byte_is_what_the_library_says(codec) -> None:
    found = codec.decode(BYTES.reshape(16, 16))
    assert found.dtype == np.float32
    assert found.shape == (16, 16 * codec.in_byte)
    if codec.in_byte == 1:
        want = elements_of(BYTES, codec.numbers)
    elif isinstance(codec.numbers, DType):
        want = elements_of(unpack(BYTES, Layout(UINT4)), codec.numbers)
    else:
        want = unpack(BYTES, Layout(codec.numbers))
    assert np.array_equal(found.reshape(-1), want.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("codec", FLOATS, ids=lambda each: each.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_rounded_once_as_the_library_rounds_them(codec, dtype) -> None:
    rng = np.random.default_rng(0)
    known = codec.decode(BYTES)
    known = np.unique(known[np.isfinite(known)].astype(np.float64))
    middles = (known[1:] + known[:-1]) / 2
    drawn = rng.standard_normal(4096) * 2.0 ** rng.integers(-12, 12, 4096)
    near = np.concatenate([middles * (1 + by) for by in (0, 1e-12, -1e-12, 1e-6, -1e-6)])
    values = np.concatenate([known, near, drawn, [0.0, -0.0, np.inf, -np.inf]]).astype(dtype)
    values = values[: values.size // 2 * 2]
    want = codes_of(encode(values, codec.numbers, overflow=Overflow.SATURATE))
    want = pack(want, Layout(UINT4)) if codec.in_byte > 1 else want
    assert np.array_equal(codec.encode(values), want)


@pytest.mark.parametrize(("name", "kind"), [("int4", INT4), ("uint4", UINT4)])
def test_whole_numbers_are_packed_as_the_library_packs_them(name: str, kind) -> None:
    codes = np.random.default_rng(1).integers(kind.lowest, kind.highest + 1, (3, 8))
    found = CODECS[name].encode(codes.astype(np.float32))
    assert np.array_equal(found, pack(codes, Layout(kind)))
    assert np.array_equal(CODECS[name].decode(found), codes)
    for wrong in (16.0, 0.5, -9.0):
        with pytest.raises(UsageError, match=f"is no {name}"):
            CODECS[name].encode(np.array([wrong, 0.0], np.float32))
    with pytest.raises(UsageError, match="no whole bytes"):
        CODECS[name].encode(np.zeros(3, np.float32))


def test_what_was_decoded_stays_as_it_is() -> None:
    arrays = {"q": BYTES[:4], "other": BYTES[:4]}
    once = decode_all(arrays, {"q": "uint4"})
    assert once["q"].tolist() == [0, 0, 1, 0, 2, 0, 3, 0]
    assert once["other"] is arrays["other"]
    assert decode_all(once, {"q": "uint4"})["q"] is once["q"]


def test_every_code_is_drawn() -> None:
    drawn = draw_codes("uint4", Family.NORMAL, (64, 64), np.random.default_rng(2))
    assert len(np.unique(drawn)) == 256
    floats = draw_codes("float8_e4m3fn", Family.UNIFORM, (64, 64), np.random.default_rng(2))
    assert np.isfinite(CODECS["float8_e4m3fn"].decode(floats)).all()


def test_a_file_is_given_numbers_and_measured_beside_them() -> None:
    declared = read_declaration(OWN, "twice.py")
    assert declared.input_tensors[0].meaning.startswith("in codes; two of -8 to 7")
    problem = problem_of("twice", declared, {"oracle": lambda x, s: 2 * x * s})
    assert problem.policies == ()
    structure, rng = Structure({"H": 64}), np.random.default_rng(3)
    inputs = problem.values(structure, Family.NORMAL, rng)
    assert inputs["x"].dtype == np.uint8
    expected = problem.oracle(structure, inputs)["y"]
    numbers = unpack(inputs["x"], Layout(INT4)).astype(np.float64)
    assert np.array_equal(expected.value, 2 * numbers * inputs["s"])
    assert (expected.scale[numbers != 0] > 0).all()


def test_answers_in_codes_are_bytes_that_are_decided() -> None:
    text = OWN.replace('"float32[2*H]: twice"', '"uint8[H]: twice"').replace(
        '"x": "int4"}', '"x": "int4", "y": "float4_e2m1fn"}'
    )
    problem = problem_of("twice", read_declaration(text, "twice.py"), {"oracle": lambda x: x / 2})
    structure = Structure({"H": 128})
    inputs = {"x": BYTES[:128], "s": np.ones(256, np.float32)}
    found = problem.oracle(structure, inputs)["y"]
    assert found.is_exact
    half = unpack(inputs["x"], Layout(INT4)).astype(np.float32) / 2
    assert np.array_equal(found.value, CODECS["float4_e2m1fn"].encode(half))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"x": "int4"}', '"s": "int4"}', "codes names 's', which is no tensor of uint8"),
        ('"x": "int4"}', '"z": "int4"}', "codes names 'z', which is no tensor of uint8"),
        ('"x": "int4"}', '"x": "int5"}', "the codes of 'x' are 'int5', none of"),
    ],
)
def test_codes_that_cannot_be_are_told(old: str, new: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_declaration(OWN.replace(old, new), "twice.py")
