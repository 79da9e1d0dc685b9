# SPDX-License-Identifier: Apache-2.0
"""C++ types of kernel parameters: which element type they mean, and how it must be aligned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernelbench.dtypes import DTYPES
from .signature import ANY, VECTOR, Parameter

_SCALARS = {
    "void": ANY,
    **{word: each.name for each in DTYPES.values() for word in each.spellings},
}
_VECTOR_BASES = {word: each.name for each in DTYPES.values() for word in each.vectors}
_PAIRS = {word: each.name for each in DTYPES.values() for word in each.pairs}
_BUILTIN = frozenset({"unsigned", "signed", "long", "short", "int", "char"})
_IGNORED = frozenset(
    {
        "volatile",
        "__restrict__",
        "__restrict",
        "restrict",
        "__grid_constant__",
        "struct",
        "class",
        "typename",
        "register",
        "__const__",
    }
)
_NAMESPACES = frozenset({"std", "cuda", "nv"})
_BYTES = ("char", "uint8")
"""Pointers to these point at bytes of anything; `signed char*` and `int8_t*` at numbers."""
_REPLACEMENTS = 100
"""Words looked at: an alias may lead to itself."""


def parameter(written: Sequence[str], aliases: Mapping[str, Sequence[str] | None]) -> Parameter:
    """The parameter that these tokens declare; `aliases` are types (and macros) of the source."""
    tokens = _without_default(_expand_aliases(list(written), aliases))
    if not tokens or any(text in ("&", "(", '""', "&&") for text in tokens):
        return Parameter(_last_word(written), " ".join(written))
    tokens, extents = _without_extents(tokens)
    is_const = "const" in tokens
    tokens = [text for text in tokens if text not in _IGNORED and text != "const"]
    stars = tokens.count("*") + extents
    base, name = _split_name(tokens)
    type_text = ("const " if is_const else "") + _join_words(base) + "*" * stars
    if stars > 1:
        return Parameter(name, type_text, is_pointer=True)
    dtype, alignment = _dtype(base)
    if stars and dtype in _BYTES:
        dtype = ANY
    if not stars and _is_vector(base):
        dtype = VECTOR
    return Parameter(name, type_text, (stars == 1) if dtype or stars else None, dtype, alignment)


def _expand_aliases(tokens: list[str], aliases: Mapping[str, Sequence[str] | None]) -> list[str]:
    """The tokens with aliases replaced, and theirs in turn, as far as that is few."""
    # The last word is the parameter's own name, except where it is all there is.
    name = tokens[-1:] if len(tokens) > 1 else []
    pending = list(reversed(tokens[: len(tokens) - len(name)]))
    found: list[str] = []
    for _ in range(_REPLACEMENTS):
        if not pending:
            break
        text = pending.pop()
        alias = aliases.get(text)
        if alias is None:
            found.append(text)
        else:
            pending += reversed(alias)
    return [*found, *reversed(pending), *name]


def _without_default(tokens: list[str]) -> list[str]:
    return tokens[: tokens.index("=")] if "=" in tokens else tokens


def _without_extents(tokens: list[str]) -> tuple[list[str], int]:
    """Without `[N]`, which makes a pointer, and `[[attributes]]`, and `alignas`-like words."""
    kept: list[str] = []
    depth = extents = 0
    for at, text in enumerate(tokens):
        if text == "[":
            is_attribute = tokens[at + 1 : at + 2] == ["["] or (depth and tokens[at - 1] == "[")
            extents += not is_attribute and depth == 0
            depth += 1
        elif text == "]":
            depth -= 1
        elif depth == 0:
            kept.append(text)
    return kept, extents


def _split_name(tokens: list[str]) -> tuple[list[str], str]:
    """The words of the type, and the parameter's name."""
    if "*" in tokens:
        first = tokens.index("*")
        behind = [text for text in tokens[first:] if text != "*"]
        return tokens[:first], behind[-1] if behind else ""
    if len(tokens) < 2 or tokens[-1] in _BUILTIN or tokens[-1] == ">" or tokens[-2] == "::":
        return tokens, ""
    return tokens[:-1], tokens[-1]


def _join_words(base: Sequence[str]) -> str:
    text = ""
    for word in base:
        is_apart = text and text[-1].isalnum() and (word[0].isalnum() or word[0] == "_")
        text += (" " if is_apart else "") + word
    return text


def _dtype(base: Sequence[str]) -> tuple[str, int]:
    """The element type's name and its alignment; an empty name where it is not known."""
    while len(base) > 1 and (base[0] == "::" or (base[0] in _NAMESPACES and base[1] == "::")):
        base = base[1:]
    if base and all(word in _BUILTIN or word == "double" for word in base) and base != ["double"]:
        name = _builtin(base)
        return name, _alignment(name)
    if len(base) != 1:
        return "", 1
    (word,) = base
    if word in _SCALARS:
        return _SCALARS[word], _alignment(_SCALARS[word])
    if word in _PAIRS:
        return _PAIRS[word], 2 * _alignment(_PAIRS[word])
    element = _VECTOR_BASES.get(word[:-1], "") if word[-1] in "1234" else ""
    if not element:
        return "", 1
    lanes = int(word[-1])
    return element, min(16, _alignment(element) * (1 if lanes == 3 else lanes))


def _alignment(name: str) -> int:
    known = DTYPES.get(name)
    return known.bytes if known else 1


def _is_vector(base: Sequence[str]) -> bool:
    word = base[-1] if base else ""
    return word in _PAIRS or (word[-1:] in tuple("1234") and word[:-1] in _VECTOR_BASES)


def _builtin(base: Sequence[str]) -> str:
    if "double" in base:
        return ""
    unsigned = "u" if "unsigned" in base else ""
    if "char" in base:
        return "uint8" if unsigned else "int8" if "signed" in base else "char"
    if "short" in base:
        return f"{unsigned}int16"
    return f"{unsigned}int64" if "long" in base else f"{unsigned}int32"


def _last_word(tokens: Sequence[str]) -> str:
    found = [
        text for text in _without_default(list(tokens)) if text[:1].isalpha() or text[:1] == "_"
    ]
    return found[-1] if found else ""
