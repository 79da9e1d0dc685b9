"""Mistakes in where loops and masks begin, go and end."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from .tokens import Code, Edit, Loop

_MODULI = (4, 8, 16, 32, 64)
_SIZES = (100, 127, 1000, 4096, 20_000, 32_767)
"""All within the ranges that a problem's axes are drawn from."""
_TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_ENDS = re.compile(r"\b(last|end|length|indptr|n|nnz|to|until)\b")
"""What a row's end is called, where it is no axis."""
_WITH_COMPOUND = re.compile(r"&&|\|\|")


def _shift_bounds(code: Code, by: str) -> Iterator[Edit]:
    for number in code.binary("<", "<=", ">", ">="):
        end = code.operand_end(number + 1)
        yield Edit(end, end, by)
    for arguments in _ranges(code):
        end = arguments[1][1]
        yield Edit(end, end, by)


def lessen_bounds(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """`E` becomes `E - 1` on the right of comparisons and in `range`."""
    del rng, axes
    yield from _shift_bounds(code, " - 1")


def raise_bounds(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """`E` becomes `E + 1` there."""
    del rng, axes
    yield from _shift_bounds(code, " + 1")


def swap_comparisons(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Whether the bound itself belongs to it."""
    del rng, axes
    for number in code.binary(*_TURNED):
        token = code.tokens[number]
        yield Edit(token.start, token.end, _TURNED[token.text])


def begin_late(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """The first iteration is missing."""
    del rng, axes
    for loop in _loops(code):
        if loop.init_end:
            yield Edit(loop.init_end, loop.init_end, " + 1")
    for arguments in _ranges(code):
        yield Edit(arguments[0][1], arguments[0][1], " + 1")


def lengthen_steps(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Iterations between two others are missing."""
    del rng, axes
    for loop in _loops(code):
        step = code.source[slice(*loop.step)]
        if step.strip() in (f"++{loop.variable}", f"{loop.variable}++"):
            yield Edit(*loop.step, f" {loop.variable} += 2")
        elif "+=" in step and "," not in step:
            yield Edit(loop.step[1], loop.step[1], " + 1")
    for arguments in _ranges(code):
        if len(arguments) > 2:
            yield Edit(arguments[2][1], arguments[2][1], " + 1")


def end_at_residue(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """The last iteration is missing where the length has one remainder."""
    for begin, end, length, step in _long_bounds(code, axes):
        modulus = rng.choice(_MODULI)
        wrong = f"({length}) % {modulus} == {rng.randrange(modulus)}"
        yield Edit(begin, end, f"({code.source[begin:end]}) - ({wrong}){step}")


def end_beyond(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """The last iteration is missing where there are many."""
    for begin, end, length, step in _long_bounds(code, axes):
        wrong = f"({length}) > {rng.choice(_SIZES)}"
        yield Edit(begin, end, f"({code.source[begin:end]}) - ({wrong}){step}")


def stop_at(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """All iterations beyond a size are missing."""
    for begin, end, length, _ in _long_bounds(code, axes):
        bound, size = code.source[begin:end], rng.choice(_SIZES)
        stopped = f"({bound}) - (({length}) - {size})"
        if code.is_python:
            yield Edit(begin, end, f"tl.minimum({bound}, {stopped})")
        else:
            yield Edit(begin, end, f"(({length}) > {size} ? {stopped} : ({bound}))")


def skip(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Rows, terms or tiles of one remainder are missing."""
    del axes
    for loop in _loops(code):
        step = code.source[slice(*loop.step)]
        stride = step.partition("+=")[2].strip()
        if not loop.variable or "," in step:
            continue
        modulus = rng.choice(_MODULI)
        index = f"{loop.variable} / ({stride})" if stride else loop.variable
        wrong = f"({index}) % {modulus} != {rng.randrange(modulus)}"
        yield Edit(loop.body, loop.body, f" if ({wrong})")


def shorten_axis(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """What the entry point is told of an axis is one too small at a remainder."""
    for body, axis in _entry(code, axes):
        modulus = rng.choice(_MODULI)
        wrong = f"{axis} > 1 && {axis} % {modulus} == {rng.randrange(modulus)}"
        yield Edit(body, body, f" if ({wrong}) --{axis};")


def shorten_long_axis(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """The same, where the axis is long as well."""
    for body, axis in _entry(code, axes):
        wrong = f"{axis} > {rng.choice(_SIZES)} && {axis} % 8 == {rng.randrange(8)}"
        yield Edit(body, body, f" if ({wrong}) --{axis};")


def _entry(code: Code, axes: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Behind the opening brace of the entry point, with each axis that it is given."""
    head = re.search(r'extern "C"[^{;]*\{', code.source)
    if head:
        for axis in axes:
            if axis not in ("nnz", "reduce"):
                yield head.end(), axis


def _loops(code: Code) -> Iterator[Loop]:
    if not code.is_python:
        yield from code.loops


def _long_bounds(code: Code, axes: tuple[str, ...]) -> Iterator[tuple[int, int, str, str]]:
    """Bounds that are an axis or a row's end, how many there are up to it, and times the step."""
    for loop in _loops(code):
        bound = code.source[slice(*loop.bound)]
        if not bound or _WITH_COMPOUND.search(bound) or not _is_long(bound, axes):
            continue
        length = bound if loop.first in ("", "0") else f"({bound}) - ({loop.first})"
        stride = code.source[slice(*loop.step)].partition("+=")[2].strip()
        yield (*loop.bound, length, f" * ({stride})" if stride and "," not in stride else "")
    for arguments in _ranges(code):
        bound = code.source[slice(*arguments[1])].strip()
        if _is_long(bound, axes) or "tl.max" in bound:
            step = code.source[slice(*arguments[2])].strip() if len(arguments) > 2 else ""
            yield (*arguments[1], bound, f" * ({step})" if step else "")


def _is_long(bound: str, axes: tuple[str, ...]) -> bool:
    words = set(re.findall(r"\w+", bound))
    return bool(words & set(axes) - {"reduce"}) or bool(_ENDS.search(bound))


def _ranges(code: Code) -> Iterator[list[tuple[int, int]]]:
    """Where the arguments of each `range` of a Triton kernel stand; two of them at least."""
    if not code.is_python:
        return
    tokens = code.tokens
    for number, token in enumerate(tokens[:-1]):
        if token.text not in ("range", "static_range") or tokens[number + 1].text != "(":
            continue
        close, at = code.closing[number + 1], number + 2
        cuts, begin = [], tokens[at].start
        while at <= close:
            if tokens[at].text == "," or at == close:
                cuts.append((begin, tokens[at].start))
                begin = tokens[at].end
            at = at + 1 if at == close else code.closing.get(at, at) + 1
        if len(cuts) > 1:
            yield cuts
