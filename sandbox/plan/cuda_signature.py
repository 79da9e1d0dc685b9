# SPDX-License-Identifier: Apache-2.0
"""Finds the `__global__` kernels of a CUDA source and what they take, before anything is built.

What only a compiler can tell (macros with arguments, parameter packs) is left to it: such a
signature has no parameters to hold arguments against.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..front_matter import FilePlace, move_place
from . import cpp_text
from .cpp_text import CppText, Token, after_brackets, split_commas
from .cpp_types import parameter
from .faults import explain_missing, quote
from .signature import Parameter, Signature

_GLOBAL = "__global__"
_NOT_NAMES = frozenset(
    {
        "__launch_bounds__",
        "__cluster_dims__",
        "__block_size__",
        "__maxnreg__",
        "__attribute__",
        "__declspec",
        "alignas",
        "decltype",
        "noexcept",
        "requires",
        "if",
    }
)
_LONGEST_HEAD = 64
"""Words between `__global__` and the bracket of the parameters."""
_MOST_KERNELS = 256
_UNDEFINED = cpp_text.Macro("", is_function=True)


@dataclass(frozen=True)
class _Found:
    """A kernel before its template parameters are known."""

    name: str
    at: int
    parameters: tuple[tuple[str, ...], ...]
    template: tuple[tuple[str, ...], ...] | None
    """None where it is no template."""


@dataclass(frozen=True)
class CudaSource:
    """The kernels of one source."""

    source: str
    text: CppText
    kernels: tuple[_Found, ...]
    aliases: Mapping[str, tuple[str, ...] | None]

    @property
    def names(self) -> list[str]:
        """Every kernel's qualified name, each once."""
        return list(dict.fromkeys(kernel.name for kernel in self.kernels))

    @property
    def labels(self) -> tuple[str, ...]:
        """The same for people: templates as `name<…>`."""
        told = (k.name + ("" if k.template is None else "<…>") for k in self.kernels)
        return tuple(dict.fromkeys(told))

    def definitions(self, name: str) -> list[str]:
        """What the source defines `name` as, by #define or as a constant."""
        macro = self.text.macros.get(name, _UNDEFINED)
        found = [macro.body if macro else ""] if macro is not _UNDEFINED else []
        tokens = self.text.tokens
        for at in range(2, len(tokens) - 3):
            if tokens[at].text != name or tokens[at + 1].text != "=":
                continue
            if any(each.text in ("const", "constexpr") for each in tokens[max(0, at - 4) : at]):
                is_whole = tokens[at + 3].text in (";", ",")
                found.append(tokens[at + 2].text if is_whole else "")
        return found

    def signatures(self, launched: str) -> tuple[Signature, ...] | str:
        """What `reduce<float, 4>` takes, in each of its versions; or why it cannot be launched.

        Nothing is known of a kernel that a macro defines: its tuple is empty.
        """
        name, bracket, rest = (part.strip() for part in launched.partition("<"))
        plain = name.removeprefix("::")
        found = [k for k in self.kernels if k.name == plain or k.name.endswith(f"::{plain}")]
        if not found:
            return self._explain_absence(plain)
        fitting = [k for k in found if (k.template is not None) == bool(bracket)]
        if not fitting:
            if bracket:
                return f"{quote(plain)} is not a template; launch it by its plain name"
            given = ", ".join(_name_of(each) for each in found[0].template or ())
            return f"{quote(plain)} is a template; name an instance: '{plain}<…>' with {given}"
        arguments = split_commas(cpp_text.words(rest.rstrip()[:-1])) if bracket else []
        return tuple(self._signature(kernel, arguments) for kernel in fitting)

    def _explain_absence(self, name: str) -> tuple[Signature, ...] | str:
        if any(_makes_kernels(macro) for macro in self.text.macros.values()):
            return ()
        if any(token.text == name.rpartition("::")[2] for token in self.text.tokens):
            return (
                f"{quote(name)} is in the source, but not as a __global__ function; its kernels: "
                f"{', '.join(self.names) or '-'}"
            )
        return explain_missing("__global__ function", name, self.names)

    def _signature(self, kernel: _Found, arguments: Sequence[Sequence[str]]) -> Signature:
        place = move_place(FilePlace(), self.source[: kernel.at])
        aliases = dict(self.aliases)
        template = tuple(_name_of(each) for each in kernel.template or ())
        for at, name in enumerate(template):
            aliases[name] = tuple(arguments[at]) if at < len(arguments) else None
        if any("..." in words for words in (*kernel.parameters, *(kernel.template or ()))):
            return Signature(kernel.name, place, None, template)
        if any(self._is_opaque(word) for words in kernel.parameters for word in words):
            return Signature(kernel.name, place, None, template)
        made: list[Parameter] = [parameter(words, aliases) for words in kernel.parameters]
        return Signature(kernel.name, place, tuple(made), template)

    def _is_opaque(self, word: str) -> bool:
        """Whether a macro may stand for more or other than a type."""
        if word not in self.text.macros:
            return False
        macro = self.text.macros[word]
        return macro is None or macro.is_function or any(c in macro.body for c in ",()")


def read_cuda(source: str) -> CudaSource:
    """The kernels of a CUDA source."""
    text = cpp_text.read(source)
    kernels = tuple(itertools.islice(_kernels(text), _MOST_KERNELS))
    return CudaSource(source, text, kernels, _aliases(text))


def _makes_kernels(macro: cpp_text.Macro | None) -> bool:
    return macro is not None and macro.is_function and (_GLOBAL in macro.body or "##" in macro.body)


def _kernels(text: CppText) -> Iterator[_Found]:
    tokens = text.tokens
    heads, macros = _heads(text), frozenset(text.macros)
    scopes: list[str] = []
    template: tuple[tuple[str, ...], ...] | None = None
    at = 0
    while at < len(tokens):
        word = tokens[at].text
        if word == "namespace":
            name, at = _namespace(tokens, at + 1)
            scopes += [name] if at <= len(tokens) and tokens[at - 1].text == "{" else []
            continue
        if word == "template" and tokens[at + 1 : at + 2] and tokens[at + 1].text == "<":
            end = after_brackets(tokens, at + 1)
            inside = [token.text for token in tokens[at + 2 : end - 1]]
            template = tuple(tuple(part) for part in split_commas(inside) if part)
            at = end
            continue
        if word in heads and (head := _head(tokens, at + 1, macros)) is not None:
            end = after_brackets(tokens, head + 1)
            name = "::".join([*filter(None, scopes), tokens[head].text])
            if (parts := _parameters(tokens[head + 2 : end - 1])) is not None:
                yield _Found(name, tokens[head].at, parts, template)
            at, template = end, None
            continue
        if word in ("{", "}", ";"):
            template = None
            scopes = [*scopes, ""] if word == "{" else scopes[:-1] if word == "}" else scopes
        at += 1


def _namespace(tokens: tuple[Token, ...], at: int) -> tuple[str, int]:
    """The name of a namespace and the index behind its `{`, `;` or whatever ends it."""
    name = ""
    while at < len(tokens) and tokens[at].text not in ("{", ";", "="):
        name += tokens[at].text if tokens[at].text != "inline" else ""
        at += 1
    return name, at + 1


def _heads(text: CppText) -> frozenset[str]:
    """`__global__` and the macros that stand for it."""
    made = (n for n, m in text.macros.items() if m and not m.is_function and _GLOBAL in m.body)
    return frozenset((_GLOBAL, *made))


def _head(tokens: tuple[Token, ...], at: int, macros: frozenset[str]) -> int | None:
    """The index of the kernel's name; None where no kernel follows."""
    last = min(len(tokens) - 1, at + _LONGEST_HEAD)
    while at < last:
        text = tokens[at].text
        if text in (";", "{", "}"):
            return None
        if not tokens[at].is_word:
            at = after_brackets(tokens, at, _LONGEST_HEAD) if text in ("(", "[") else at + 1
            continue
        behind = at + 1
        if tokens[behind].text == "<":
            behind = after_brackets(tokens, behind, _LONGEST_HEAD)
        if behind < len(tokens) and tokens[behind].text == "(":
            if text not in _NOT_NAMES and text not in macros:
                return at if behind == at + 1 else None
            behind = after_brackets(tokens, behind, _LONGEST_HEAD)
        at = behind
    return None


def _parameters(tokens: Sequence[Token]) -> tuple[tuple[str, ...], ...] | None:
    parts = split_commas([token.text for token in tokens])
    if parts in ([], [[]], [["void"]]):
        return ()
    return tuple(tuple(part) for part in parts)


def _name_of(template_parameter: Sequence[str]) -> str:
    """`T` of `typename T = float`."""
    head = list(template_parameter)
    if "=" in head:
        head = head[: head.index("=")]
    return head[-1] if head else ""


def _aliases(text: CppText) -> dict[str, tuple[str, ...] | None]:
    """Type aliases and macros that stand for a few words; None where they are not certain."""
    found: dict[str, tuple[str, ...] | None] = {}
    for name, macro in text.macros.items():
        if macro and not macro.is_function and macro.body and len(macro.body) < 80:
            found[name] = tuple(cpp_text.words(macro.body))
    tokens = text.tokens
    for at, token in enumerate(tokens):
        if token.text not in ("using", "typedef"):
            continue
        end = next((i for i in range(at, min(at + 24, len(tokens))) if tokens[i].text == ";"), at)
        inside = [each.text for each in tokens[at + 1 : end]]
        if token.text == "using" and inside[1:2] == ["="]:
            name, meaning = inside[0], tuple(inside[2:])
        elif token.text == "typedef" and len(inside) > 1:
            name, meaning = inside[-1], tuple(inside[:-1])
        else:
            continue
        found[name] = meaning if found.get(name, meaning) == meaning else None
    return found
