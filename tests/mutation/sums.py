"""Mistakes in what is computed, kept and waited for."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from .tokens import Code, Edit

_OTHER = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "%": "/",
    "&&": "||",
    "||": "&&",
    "==": "!=",
    "+=": "-=",
    "*=": "+=",
    "/=": "*=",
}
_SCALAR = r"(?:float|double|vf|int|int64_t|long|Moments|auto)"
_SET = re.compile(
    rf"(?m)^(?P<before>\s*){_SCALAR} \w+(?:\[\w+\])*\s*=\s*(?:\{{\}}|-?[\d.]+f?|-INFINITY)\s*[;,]"
)
_ZERO = re.compile(r"(?<=[\w\]])\s*=\s*(?:\{\s*\}|0|0\.0f?|0\.f)(?=\s*[;,])")
_INFINITE = re.compile(
    r"-\s*(?:INFINITY|CUDART_INF_F|__int_as_float\(0x7f800000\))|-float\(\"inf\"\)"
)
_FIRST = re.compile(r"(?<== )\w+\[0\](?=[;,])")
_DIRECTIVE = re.compile(r"reduction\([^)]*\)")
_FOR = re.compile(r"#\s*pragma omp for(?!.*nowait).*")
_WAITS = re.compile(
    r"__syncthreads\(\)|__syncwarp\([^;]*\)|__threadfence(?:_block)?\(\)|tl\.debug_barrier\(\)"
)
_ATOMIC = re.compile(r"\batomicAdd\((&?)([^;]*?), ([^;]*)\);")
_SIGNATURE = re.compile(r"mask\s*=")


def drop_statements(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Nothing stands where an assignment or a call stood."""
    del rng, axes
    if not code.is_python:
        tokens = code.tokens
        for first, last in code.statements():
            if tokens[first].text != "drain":
                yield Edit(tokens[first].start, tokens[last].end, ";")
        return
    known: set[str] = set()
    for found in re.finditer(
        r"(?m)^ +(?:(\w+) (\+?=) |tl\.(?:store|atomic_add)\()[^\n]*", code.source
    ):
        name = found[1]
        if not name or found[2] == "+=" or name in known:
            begin = found.start() + len(found[0]) - len(found[0].lstrip())
            if found[0].count("(") == found[0].count(")"):
                yield Edit(begin, found.end(), "pass")
        known.add(name or "")


def drop_terms(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """`a + b` becomes `a`."""
    del rng, axes
    for number in code.binary("+", "-", "*", "/"):
        yield Edit(code.tokens[number - 1].end, code.operand_end(number + 1), "")


def change_operators(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """`a + b` becomes `a - b`, and so on."""
    del rng, axes
    for number in code.binary(*_OTHER):
        token = code.tokens[number]
        yield Edit(token.start, token.end, _OTHER[token.text])


def lose_sums(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Only the last term is kept. Of statements, not of the steps of loops."""
    del rng, axes
    steps = [loop.step for loop in code.loops] if not code.is_python else []
    for number in code.binary("+="):
        token = code.tokens[number]
        if not any(begin <= token.start < end for begin, end in steps):
            yield Edit(token.start, token.end, "=")


def keep_values(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """What is set for each row is set once for each thread."""
    del rng, axes
    for found in _SET.finditer(code.source):
        at = found.end("before")
        yield Edit(at, at, "static thread_local ")


def leave_unset(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """A variable or an array is declared and not set; of Triton, it begins with one."""
    del rng, axes
    if code.is_python:
        for found in re.finditer(r"tl\.zeros\((.*?), (tl\.\w+)\)", code.source):
            yield Edit(found.start(), found.end(), f"tl.full({found[1]}, 1.0, {found[2]})")
        return
    heads = [loop.init_end for loop in code.loops]
    for found in _ZERO.finditer(code.source):
        if found.end() not in heads and _stands_in_code(code, found.start()):
            yield Edit(found.start(), found.end(), "")


def raise_initial(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """It begins with what is no lower bound of the values."""
    del axes
    suffix = "" if code.is_python else "f"
    for pattern in (_INFINITE, _FIRST):
        for found in pattern.finditer(code.source):
            yield Edit(*found.span(), rng.choice((f"0.0{suffix}", f"-10.0{suffix}")))


def drop_sync(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Who waits, or adds as one, does so no more."""
    del rng, axes
    for directive in code.directives:
        if re.search(r"omp (?:barrier|atomic|critical|taskwait|single)", directive.text):
            yield Edit(directive.start, directive.end, "")
        elif found := _DIRECTIVE.search(directive.text):
            at = directive.start + found.start()
            yield Edit(at, directive.start + found.end(), "")
        elif _FOR.search(directive.text):
            yield Edit(directive.end, directive.end, " nowait")
    for found in _WAITS.finditer(code.source):
        if _stands_in_code(code, found.start()):
            yield Edit(*found.span(), "pass" if code.is_python else "")
    for found in _ATOMIC.finditer(code.source):
        place = found[2] if found[1] else f"*({found[2]})"
        yield Edit(*found.span(), f"{place} += {found[3]};")
    for found in re.finditer(r"tl\.atomic_add\(", code.source):
        yield Edit(*found.span(), "tl.store(")


def fix_conditions(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """Of `if`, `? :` and `tl.where`."""
    del axes
    tokens = code.tokens
    for number, token in enumerate(tokens[:-1]):
        if token.text == "if" and tokens[number + 1].text == "(":
            close = tokens[code.closing[number + 1]]
            inner = code.source[tokens[number + 1].end : close.start]
            if ";" not in inner:
                yield Edit(tokens[number + 1].end, close.start, rng.choice(("true", "false")))
        elif token.text == "?" and code.is_spaced(token):
            yield Edit(token.start, token.start, "== 0 ")
        elif token.text == "where" and tokens[number + 1].text == "(":
            begin, at = tokens[number + 1].end, number + 2
            while tokens[at].text != ",":
                at = code.closing.get(at, at) + 1
            turned = f"({code.source[begin : tokens[at].start]}) == 0"
            yield Edit(begin, tokens[at].start, turned)


def drop_masks(code: Code, rng: random.Random, axes: tuple[str, ...]) -> Iterator[Edit]:
    """A load or a store takes all lanes."""
    del rng, axes
    for found in _SIGNATURE.finditer(code.source):
        number = next(n for n, t in enumerate(code.tokens) if t.start >= found.end())
        at = number
        while code.tokens[at].text not in (",", ")"):
            at = code.closing.get(at, at) + 1
        yield Edit(found.start(), code.tokens[at].start, "mask=None")


def _stands_in_code(code: Code, position: int) -> bool:
    return any(t.start <= position <= t.end for t in code.tokens)
