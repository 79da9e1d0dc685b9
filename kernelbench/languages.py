# SPDX-License-Identifier: Apache-2.0
"""The languages that candidates are written in: the one registry.

What a floor above knows of a language (how it is built and run, what a prompt says of it, what its
launch plans hold) it registers in one table of its own, keyed by Language. Records hold the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum

from ..errors import UnknownNameError
from .targets import Target, Vendor


class Tier(StrEnum):
    """How much of the host side is the candidate's own code."""

    DEVICE_ONLY = "device-only"
    NATIVE = "native"
    HOST_CODE = "host-code"


class Syntax(Enum):
    """How a source is written, by what begins a comment that ends with its line."""

    C = "//"
    PYTHON = "#"

    def head(self, matter: str = "", words: Sequence[str] = ()) -> str:
        """The head of a file: front matter where there is any, then lines for people."""
        if self is Syntax.C:
            framed = f"/*---\n{matter}---*/\n" if matter else ""
            return framed + "".join(f"{self.value} {line}".rstrip() + "\n" for line in words)
        framed = f"\n---\n{matter}---\n" if matter else ""
        # Words may be a module's code.
        told = "".join(line + chr(10) for line in words).replace("\\", "\\\\")
        return f'"""{framed}{told.replace(chr(34) * 3, chr(39) * 3)}"""\n'


@dataclass(frozen=True)
class Language:
    """What every floor may ask about a language."""

    name: str
    """As records, front matter and the command line have it."""
    title: str
    """For people."""
    suffixes: tuple[str, ...]
    """Of files; ours have the first."""
    syntax: Syntax
    tier: Tier
    is_for_gpu: bool
    """It runs on GPUs, or on an emulation of one; else on this machine's CPU."""
    has_launch_plan: bool
    markup: str
    """What Markdown and Pygments call its text."""
    labels: frozenset[str]
    """What a fenced block that may hold one is labelled."""
    vendors: frozenset[Vendor] = frozenset(Vendor)
    """Whose GPUs it runs on, where it runs on GPUs."""

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """Of the files that we write."""
        return self.suffixes[0]

    @property
    def is_native(self) -> bool:
        """Whether a compiler makes a shared object of it that the host calls."""
        return self.tier is Tier.NATIVE

    @property
    def example_target(self) -> str:
        """A target that takes it."""
        return "sm_90" if self.is_for_gpu else "cpu"

    def runs_on(self, target: Target) -> bool:
        """Whether candidates for this target may be written in it."""
        if target.gpu is None:
            return not self.is_for_gpu
        return self.is_for_gpu and target.gpu.vendor in self.vendors


_C_LABELS = frozenset(("cpp", "c++", "cc", "cxx", "c", "hpp", "h"))
_PYTHON_LABELS = frozenset(("python", "py", "python3", "triton", "pytorch", "torch"))

CPP = Language(
    name="cpp",
    title="C++",
    suffixes=(".cpp", ".cc", ".cxx"),
    syntax=Syntax.C,
    tier=Tier.NATIVE,
    is_for_gpu=False,
    has_launch_plan=False,
    markup="cpp",
    labels=_C_LABELS,
)
CUDA = Language(
    name="cuda",
    title="CUDA",
    suffixes=(".cu",),
    syntax=Syntax.C,
    tier=Tier.DEVICE_ONLY,
    is_for_gpu=True,
    has_launch_plan=True,
    markup="cuda",
    labels=_C_LABELS | {"cuda", "cu", "cuh", "cuda-cpp", "cuda-c++"},
    vendors=frozenset({Vendor.NVIDIA}),
)
TRITON = Language(
    name="triton",
    title="Triton",
    suffixes=(".py",),
    syntax=Syntax.PYTHON,
    tier=Tier.DEVICE_ONLY,
    is_for_gpu=True,
    has_launch_plan=True,
    markup="python",
    labels=_PYTHON_LABELS,
)
PYTHON = Language(
    name="python",
    title="Python",
    suffixes=(".py",),
    syntax=Syntax.PYTHON,
    tier=Tier.HOST_CODE,
    is_for_gpu=False,
    has_launch_plan=False,
    markup="python",
    labels=_PYTHON_LABELS,
)

LANGUAGES = {each.name: each for each in (CPP, CUDA, TRITON, PYTHON)}
"""By name; of those that run on a target the first is the usual one."""


def language_of(name: str) -> Language:
    """The language with the name; UnknownNameError with what there is."""
    if name not in LANGUAGES:
        raise UnknownNameError.for_name("language", name, LANGUAGES)
    return LANGUAGES[name]


def list_names() -> str:
    """Their names, for help and hints."""
    *first, last = LANGUAGES
    return f"{', '.join(first)} or {last}"


def languages_on(target: Target) -> tuple[Language, ...]:
    """Those that run there, the usual one first."""
    return tuple(each for each in LANGUAGES.values() if each.runs_on(target))


def languages_of_suffix(suffix: str) -> tuple[Language, ...]:
    """Those whose files may end so."""
    return tuple(each for each in LANGUAGES.values() if suffix in each.suffixes)


def tier_of(name: str) -> Tier:
    """The tier of candidates in the language; nothing of one that is not known runs on the host."""
    known = LANGUAGES.get(name)
    return known.tier if known else Tier.DEVICE_ONLY
