# SPDX-License-Identifier: Apache-2.0
"""Tells how alike two sources are, whatever their comments and spacing.

For novelty only: what is the same candidate is said by its id. The front matter counts, since it
says how a kernel is launched.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache

from ...kernelbench.languages import Language, Syntax, language_of
from .code_blocks import unix_lines
from .shape import Head, body_of, head_of

_RUN = 3
"""Tokens that are compared together, so that the order of statements counts, too."""

_STRING = r"\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?"
_WORDS = r"[^\W\d]\w*|\.?\d(?:[eEpP][+-]|'?[\w.])*"
_CPP = re.compile(
    r"(?P<skip>[^\S\n]+|\\\n|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))"
    r"|(?P<line>\n)"
    r"|(?P<raw>(?:u8|[uUL])?R\"(?P<tag>[^()\\\s]{0,16})\(.*?(?:\)(?P=tag)\"|\Z))"
    rf"|(?:u8|[uUL])?(?:{_STRING})|{_WORDS}|.",
    re.S,
)
_PYTHON = re.compile(
    r"(?P<skip>[^\S\n]+|\\\n|#[^\n]*)"
    r"|(?P<line>\n)"
    r"|(?P<long>[rRbBfFuU]{0,2}(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)))"
    rf"|[rRbBfFuU]{{0,2}}(?:{_STRING})|{_WORDS}|.",
    re.S,
)


def hash_normalised(source: str, language: str) -> str:
    """A hash that is the same for sources that differ in comments and spacing only, hex.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    raw = "\0".join(tokens(source, language)).encode(errors="surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def similarity(one: str, other: str, language: str) -> float:
    """The share of runs of three tokens that two sources have in common, from 0 to 1.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    first, second = _runs(one, language), _runs(other, language)
    union = len(first | second)
    return len(first & second) / union if union else 1.0


def tokens(source: str, language: str) -> list[str]:
    """The words and signs of a source without comments, and its front matter's facts."""
    known = language_of(language)
    source = unix_lines(source)
    head = head_of(source, known)
    body = source if head and head.is_broken else body_of(source, head)
    is_python = known.syntax is Syntax.PYTHON
    words = _python_tokens(_drop_docstring(body, head)) if is_python else _cpp_tokens(body)
    return [*_facts(head, known), *words]


def _drop_docstring(body: str, head: Head | None) -> str:
    """Python's front matter is the start of a docstring, whose rest is prose."""
    if head is None or head.is_broken:
        return body
    ends = [at for quotes in ('"""', "'''") if (at := body.find(quotes)) >= 0]
    return body[min(ends) + 3 :] if ends else body


def _facts(head: Head | None, language: Language) -> list[str]:
    if head is None or head.is_broken:
        return []
    if head.facts is None:
        return [head.text]
    facts = {"language": language.name, **head.facts}
    # A list of words, so that two sources with other numbers in a plan still are alike.
    return re.findall(r"\w+|\W", json.dumps(facts, sort_keys=True, default=str))


def _cpp_tokens(body: str) -> Iterator[str]:
    """A line end counts behind a directive only."""
    is_directive, is_first = False, True
    for found in _CPP.finditer(body):
        if found["skip"]:
            continue
        if found["line"]:
            if is_directive:
                yield "\n"
            is_directive, is_first = False, True
            continue
        is_directive = is_directive or (is_first and found[0] == "#")
        is_first = False
        yield found[0]


def _python_tokens(body: str) -> Iterator[str]:
    """Line ends and indentation count outside brackets; docstrings don't."""
    depth = 0
    is_first, indent = True, ""
    held: list[str] = []
    """A string that starts a line with its indentation: a docstring if nothing follows it."""
    for found in _PYTHON.finditer(body):
        text = found[0]
        if found["line"]:
            if not is_first and not held and depth == 0:
                yield "\n"
            is_first, indent, held = depth == 0, "", []
            continue
        if found["skip"]:
            indent = text if is_first and not text.startswith(("#", "\\")) else indent
            continue
        if is_first and depth == 0:
            is_first = False
            if found["long"]:
                held = [indent, text]
                continue
            yield indent
        yield from held
        held = []
        depth = max(0, depth + (text in "([{") - (text in ")]}"))
        yield text
    if depth:
        yield from held


@lru_cache(maxsize=128)
def _runs(source: str, language: str) -> frozenset[tuple[str, ...]]:
    """Kept, since the newest of every island are what each newcomer is held against."""
    words = tokens(source, language)
    return frozenset(
        tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1)) if words
    )
