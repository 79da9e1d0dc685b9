# SPDX-License-Identifier: Apache-2.0
"""Reads CUDA C++ as text: what cannot be emulated, and `__shared__` in words a C++ compiler knows.

It knows tokens, not the language: comments and strings, brackets, preprocessor lines. What it does
not understand it reports; it never guesses. Line numbers stay what they were.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import cuda_conditions, inline_ptx

FILE = "candidate.cu"

_PIECES = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*            # a comment to the end of the line
      | /\*.*?(?:\*/|\Z)
      | \bR"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
      | "(?:[^"\\\n]|\\.)*"
      | (?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)*'   # not the separator in 1'000
    """,
    re.S | re.X,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)

_FOREIGN = (
    (r"\bcuda::(?!std\b)\w+", "libcu++ beyond cuda::std"),
    (
        r"\bnamespace\s+\w+\s*=\s*cuda\s*;|\busing\s+namespace\s+cuda\s*;",
        "libcu++ beyond cuda::std",
    ),
    (r"\b(?:cub|thrust|cutlass|cute)::\w+", "a library of device code"),
    (
        r"\b(?:grid_group|this_grid|multi_grid_group|cluster_group|this_cluster)\b",
        "cooperation between blocks, which needs a cooperative launch or a cluster: end the kernel "
        "there, and let the plan launch the rest as a second one",
    ),
    (r"\b__cluster_dims__\b", "clusters"),
    (
        r"\b(?:cudaTextureObject_t|cudaSurfaceObject_t|tex[123]D\w*|surf[123]D\w*)\b|\btexture\s*<",
        "textures and surfaces",
    ),
    (r"\b__nv_fp6\w*|\b__nv_cvt_\w*fp6\w*", "fp6 types"),
    (r"\bCUtensorMap\b|\bwgmma\w*|\btcgen05\w*", "TMA and wgmma"),
    (r"\bwmma::experimental\b", "experimental wmma types"),
    (r"\b__nvvm_\w+|\b__nv_ptx_\w+", "compiler internals"),
    (r"\bkw(?:::|_\w)|\bKW_\w", "names of this emulator"),
)
_OF_HOST = (
    (r"<<<", "a launch from the device (<<<…>>>)"),
    (r"\bcuda[A-Z]\w*\s*\(", "the CUDA runtime's functions"),
)
"""What may stand in a macro that the source never uses."""
_REASONS = 8
_KEYWORDS = re.compile(r"\b(?:extern|static|__shared__)\b")
_ALIGNMENT = re.compile(r"\b(?:alignas|__align__|__builtin_align__|__attribute__)\s*\(")
_OPEN, _CLOSE = "([{", ")]}"
_LINKAGE = re.compile(r"\bextern\s*\"\s*\"\s*$")


class _Unreadable(Exception):
    """A declaration of shared memory that this module does not understand."""


@dataclass(frozen=True)
class Rewritten:
    """A source that a C++ compiler takes, or the reasons why there is none."""

    text: str = ""
    reasons: tuple[str, ...] = ()


def rewrite(source: str) -> Rewritten:
    """The source with its shared memory and its PTX made to calls of the emulator."""
    code = blank_out(source)
    reasons = [f"line {line}: {what}" for line, what in _foreign(code)]
    if reasons:
        return Rewritten(reasons=tuple(reasons[:_REASONS]))
    if re.search(r"\b_*asm\b", code):
        source = inline_ptx.rewrite_statements(source, code, without_comments(source))
        code = blank_out(source)
    body = without_directives(code)
    pieces, done = [], 0
    scopes = _scopes(body) if "__shared__" in body else []
    for number, found in enumerate(re.finditer(r"\b__shared__\b", code)):
        line = _line(code, found.start())
        if body[found.start()] == " ":
            return Rewritten(reasons=(f"line {line}: __shared__ inside a macro",))
        try:
            start, end = _declaration(body, found)
            if start < done:
                raise _Unreadable("two declarations in one statement")
            text = _replacement(source[start:end], body[start:end], number)
            if not scopes[bisect.bisect_right(scopes, (start, True)) - 1][1]:
                text = _at_file_scope(text, _line(code, end))
        except _Unreadable as error:
            return Rewritten(reasons=(f"line {line}: a __shared__ declaration with {error}",))
        pieces += [source[done:start], text]
        done = end
    return Rewritten("".join([*pieces, source[done:]]))


def shared_names(source: str) -> set[str]:
    """The variables in shared memory, as far as this module understands their declarations."""
    code = blank_out(source)
    body = _DIRECTIVE.sub(lambda found: _spaces(found[0]), code)
    names: set[str] = set()
    for found in re.finditer(r"\b__shared__\b", body):
        try:
            start, end = _declaration(body, found)
            names |= {
                _name(part) for part in _declarators(_KEYWORDS.sub(_same_width, body[start:end]))
            }
        except _Unreadable:
            continue
    return names


def blank_out(source: str) -> str:
    """The source with spaces for comments and for what stands between quotes; as long as before."""

    def blank(found: re.Match[str]) -> str:
        piece = found[0]
        if piece.startswith("/"):
            return _spaces(piece)
        first = 2 if piece.startswith("R") else 1
        return piece[:first] + _spaces(piece[first:-1]) + piece[-1]

    return _PIECES.sub(blank, source)


def without_comments(source: str) -> str:
    """The source with spaces for comments alone; as long as before."""
    return _PIECES.sub(lambda found: _spaces(found[0]) if found[0][0] == "/" else found[0], source)


def without_directives(code: str) -> str:
    """Blanked code with spaces for its preprocessor lines."""
    return _DIRECTIVE.sub(lambda found: _spaces(found[0]), code)


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _foreign(code: str) -> Iterator[tuple[int, str]]:
    """Line and name of what has no counterpart on the CPU; each kind once."""
    statements = without_directives(code)
    for patterns, text in ((_FOREIGN, code), (_OF_HOST, statements)):
        for pattern, what in patterns:
            if found := re.search(pattern, text):
                yield _line(code, found.start()), what
    for place, name in cuda_conditions.find_differing(code):
        yield _line(code, place), f"a condition on {name}, which NVRTC may answer differently"


def _declaration(body: str, keyword: re.Match[str]) -> tuple[int, int]:
    """Where the statement with this `__shared__` starts and where its semicolon stands."""
    start = max(body.rfind(mark, 0, keyword.start()) for mark in ";{}") + 1
    # A label or a condition may stand before it.
    before = body[start : keyword.start()]
    if (last := max(before.rfind(":"), before.rfind(")"))) >= 0 and not _ALIGNMENT.search(before):
        start += last + 1
    start += len(body[start:]) - len(body[start:].lstrip())
    depth = 0
    for place in range(keyword.end(), len(body)):
        if body[place] in _OPEN:
            depth += 1
        elif body[place] in _CLOSE:
            depth -= 1
        elif body[place] == ";" and depth == 0:
            return start, place
        if depth < 0:
            break
    raise _Unreadable("no end")


def _replacement(text: str, body: str, number: int) -> str:
    """`struct kw_shared_3 { float a[4]; }; auto& a = …`, without the last semicolon."""
    words = set(_KEYWORDS.findall(body))
    names = [_name(part) for part in _declarators(_KEYWORDS.sub(_same_width, body))]
    kept = _KEYWORDS.sub(_same_width, text)
    tag = f"kw_shared_{number}"
    if "extern" in words:
        if len(names) != 1 or not re.search(r"\[\s*\]", body):
            raise _Unreadable("extern that is not one array without a size")
        place = re.search(r"\[\s*\]", body)
        assert place is not None
        kept = kept[: place.start()] + "[1]" + kept[place.end() :]
        call = f"::kw::dynamic<decltype({tag}::{names[0]})>()"
        return f"struct {tag} {{ {kept}; }}; [[maybe_unused]] auto& {names[0]} = {call}"
    made = [
        f"[[maybe_unused]] auto& {name} = ::kw::shared<{tag}, {i}, decltype({tag}::{name})>()"
        for i, name in enumerate(names)
    ]
    return f"struct {tag} {{ {kept}; }}; " + "; ".join(made)


def _same_width(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _declarators(body: str) -> list[str]:
    """The parts between the commas that separate variables; brackets of types are left out."""
    parts, current, depth, angles = [], "", 0, 0
    for c in body:
        if c in _OPEN:
            depth += 1
        if depth == 0 and c == "<":
            angles += 1
        if depth == 0 and angles == 0:
            if c == ",":
                parts.append(current)
                current = ""
                continue
            current += c
        elif c in "([" and depth == 1 and angles == 0:
            current += c
        if depth == 0 and c == ">":
            angles -= 1
        if c in _CLOSE:
            depth -= 1
            if depth == 0 and c != "]":
                current += " "
    return [*parts, current]


def _name(declarator: str) -> str:
    head = re.split(r"[\[=]", _ALIGNMENT.sub(" ", declarator), maxsplit=1)[0]
    names = re.findall(r"[A-Za-z_]\w*", head)
    if not names or "(" in head:
        raise _Unreadable("no name that can be found")
    return str(names[-1])


def _scopes(body: str) -> list[tuple[int, bool]]:
    """From which places on the text is inside a function, and from which it is not."""
    found, open_brackets, last = [(-1, False)], [False], 0
    for mark in re.finditer(r"[{};]", body):
        if mark[0] == "{":
            head = body[last : mark.start()]
            is_namespace = "namespace" in head and "(" not in head[head.rfind("namespace") :]
            is_function = not is_namespace and not _LINKAGE.search(head[-40:])
            open_brackets.append(open_brackets[-1] or is_function)
        elif mark[0] == "}" and len(open_brackets) > 1:
            open_brackets.pop()
        if mark[0] != ";":
            found.append((mark.start(), open_brackets[-1]))
        last = mark.end()
    return found


def _at_file_scope(text: str, line: int) -> str:
    """A macro instead of a variable: there is no block yet when the library is loaded."""
    declared, *made = text.split("; [[maybe_unused]] auto& ")
    macros = [re.sub(r"^(\w+) = (.*)$", r"#define \1 (\2)", one, flags=re.S) for one in made]
    return "\n".join([f"{declared};", *macros, f'#line {line} "{FILE}"', ""])
