"""Mistakes in which values are taken, and in how many bits they are kept."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from .tokens import Code, Edit, Token

_WIDE = ("int64_t", "size_t", "long", "ptrdiff_t")
_NO_VARIABLES = (
    *_WIDE,
    "int",
    "float",
    "double",
    "const",
    "unsigned",
    "tl",
    "None",
    "to",
    "sizeof",
)
_REAL = ("float", "double")
_BEFORE = (";", "{", "}", "(", ",", "const")
CUT = """
#include <cstring>
#include <type_traits>
template <typename T> static inline T cut_to_16_bits(T given) {
    static_assert(std::is_floating_point_v<T> || !std::is_arithmetic_v<T>);
    unsigned words[sizeof(T) / 4];
    std::memcpy(words, &given, sizeof(T));
    for (unsigned& word : words) word = (word + 0x8000u) & 0xffff0000u;
    std::memcpy(&given, words, sizeof(T));
    return given;
}
static inline double cut_to_16_bits(double given) { return cut_to_16_bits((float)given); }
"""
"""What C++ mutants of `cut_bits` begin with: of floats, doubles and vectors of floats."""


def swap_indices(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """The first two names of an index, or of a sum that is an address."""
    del rng, axes
    for opened, closed in code.closing.items():
        head = code.tokens[opened - 1].text if opened else ""
        if code.tokens[opened].text != "[" and head not in ("load", "store"):
            continue
        names = [code.tokens[n] for n in range(opened + 1, closed) if _is_variable(code, n)]
        one = names[0] if names else None
        other = next((t for t in names if one and t.text != one.text), None)
        if one and other:
            between = code.source[one.end : other.start]
            # A plain sum is the same either way.
            if between != " + " or code.source[other.end : other.end + 2] == " *":
                yield Edit(one.start, other.end, other.text + between + one.text)


def mistake_axes(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """An axis that is used, not declared, becomes another one."""
    lengths = [axis for axis in axes if axis not in ("nnz", "reduce")]
    for number, token in enumerate(code.tokens):
        before = code.tokens[number - 1].text if number else ""
        behind = code.tokens[number + 1].text if number + 1 < len(code.tokens) else ""
        if token.text not in lengths or len(lengths) < 2:
            continue
        if before in ("int", "int64_t", "size_t") or (
            code.is_python and before in "(," and behind == ","
        ):
            continue
        other = rng.choice([axis for axis in lengths if axis != token.text])
        yield Edit(token.start, token.end, other)


def change_constants(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Integers by one; others by a hundredth or a thousandth."""
    del axes
    for token in code.tokens:
        if token.kind != "number":
            continue
        text = token.text
        if re.fullmatch(r"\d+[uUlL]*", text):
            digits = re.sub(r"\D", "", text)
            changed = str(max(0, int(digits) + rng.choice((-1, 1)))) + text[len(digits) :]
        elif text.lower().startswith("0x"):
            continue
        else:
            number_part = text.rstrip("fFlL")
            value = float(number_part) * rng.choice((1.01, 0.999)) or 0.001
            changed = f"{value!r}{text[len(number_part) :]}"
        if changed != text:
            yield Edit(token.start, token.end, changed)


def narrow_to_16(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Counters and places are kept in 16 bits."""
    del rng, axes
    if code.is_python:
        for found in re.finditer(r"(?<=\.to\(tl\.)int(?:32|64)(?=\))", code.source):
            yield Edit(*found.span(), "int16")
        return
    for token in _declared(code, ("int", *_WIDE)):
        yield Edit(token.start, token.end, "short")


def narrow_to_32(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Products of axes are kept in 32 bits."""
    del rng, axes
    if code.is_python:
        for found in re.finditer(r"(?<=\.to\(tl\.)int64(?=\))", code.source):
            yield Edit(*found.span(), "int32")
        return
    for found in re.finditer(rf"\b(?:long long|{'|'.join(_WIDE)})\b", code.source):
        yield Edit(*found.span(), "int")


def halve(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Float16: eleven bits."""
    del rng, axes
    if code.is_python:
        for found in re.finditer(r"(?<=tl\.)float(?:32|64)", code.source):
            yield Edit(*found.span(), "float16")
        return
    for token in _declared(code, _REAL):
        yield Edit(token.start, token.end, "_Float16")


def cut_bits(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """What is assigned is rounded to bfloat16; in CUDA, cut."""
    del rng, axes
    is_device = "__global__" in code.source
    for number in code.binary("=", "+=", "*="):
        at, end = number + 1, number + 1
        kind = code.tokens[number - 2].text
        if code.tokens[at].text in ("{", "[") or kind in ("*", "bool", "auto", "int", *_WIDE):
            continue
        if any(loop.head <= code.tokens[at].start < loop.body for loop in code.loops):
            continue
        while code.tokens[end].text not in (";", ",", "{", "}", ")", "]"):
            end = code.closing.get(end, end) + 1
        begin, stop = code.tokens[at].start, code.tokens[end].start
        given = code.source[begin:stop]
        if is_device:
            cut = f"__uint_as_float(__float_as_uint({given}) & 0xffff0000u)"
        else:
            cut = f"cut_to_16_bits({given})"
        yield Edit(begin, stop, cut)


def narrow_doubles(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Float32: 24 bits of 53."""
    del rng, axes
    for token in code.tokens:
        if token.text in ("double", "float64"):
            yield Edit(token.start, token.end, "float" if token.text == "double" else "float32")


def _declared(code: Code, types: tuple[str, ...]) -> Iterator[Token]:
    """Types of variables that are no pointers; of a function's own parameters, too."""
    tokens = code.tokens
    for number, token in enumerate(tokens[1:-2], start=1):
        names = tokens[number + 1].kind == "name" and tokens[number + 2].text != "("
        if token.text in types and tokens[number - 1].text in _BEFORE and names:
            yield token


def _is_variable(code: Code, number: int) -> bool:
    """Whether it is a name by itself: no type, no array, no function, no member."""
    token, behind = code.tokens[number], code.tokens[number + 1].text
    before = code.tokens[number - 1].text
    if token.kind != "name" or token.text in _NO_VARIABLES or token.text.endswith("_ptr"):
        return False
    return behind not in ("[", "(", ".", "->", "::", "=", "*>") and before not in (".", "->", "::")
