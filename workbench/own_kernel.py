# SPDX-License-Identifier: Apache-2.0
"""A kernel that the user brings: read, its language told, made a candidate where it is none.

CUDA as people publish it (a launcher beside its kernels, `load_inline` in a Python module) gets its
launch plan from its own host code (sandbox/host_plan). A candidate of an earlier campaign is taken
as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..kernelbench.languages import (
    CUDA,
    LANGUAGES,
    PYTHON,
    TRITON,
    languages_of_suffix,
    list_names,
)
from ..kernelbench.targets import AUTO, target_of
from ..sandbox.host_plan.module import compiles_cuda
from ..traces import names

if TYPE_CHECKING:
    from ..kernelbench.problem import Problem

MOST_SOURCE_BYTES = 256 << 10
"""As large as a candidate may be."""
_IMPORTS_TRITON = re.compile(r"^\s*(?:import triton\b|from triton\b)", re.M)
PLAN_WRITTEN = "its launch plan was written from its host code"


@dataclass(frozen=True)
class OwnKernel:
    """A source to begin from."""

    text: str
    language: str = ""
    """Empty: of a text without a file, which does not say."""
    name: str = ""
    """What it was called, for people."""
    note: str = ""
    """What was done to make it a candidate, and what was guessed."""
    fault: str = ""
    """Why no launch plan could be written for it; empty: it has one, or needs none."""


def language_of_source(file: Path, text: str, target: str = AUTO) -> str:
    """The language of a file by its ending; of Python by its target, its imports and what it
    compiles.

    Raises:
        UsageError: nothing is written in files that end so.
    """
    found = languages_of_suffix(file.suffix)
    if not found:
        known = dict.fromkeys(end for each in LANGUAGES.values() for end in each.suffixes)
        raise UsageError(
            f"the ending of {file.name} names no language that candidates are written in",
            hint=f"say it with --language {list_names()}, or end it in one of {' '.join(known)}",
        )
    if PYTHON not in found:
        return found[0].name
    if compiles_cuda(text):
        return CUDA.name
    if target != AUTO:
        return PYTHON.name if target_of(target).is_cpu else TRITON.name
    return TRITON.name if _IMPORTS_TRITON.search(text) else PYTHON.name


def read_start(name: str | Path, home: Path, target: str = AUTO) -> OwnKernel:
    """What `--from` names: a file, or a candidate that a store of campaigns holds.

    Raises:
        UsageError: there is none such, or it is no source.
    """
    file = Path(name)
    if _is_reference(str(name), file):
        return _read_recorded(str(name), home)
    text = read_source_file(file)
    try:
        language = language_of_source(file, text, target)
    except UsageError:
        language = ""  # `transpile` takes any text
    return OwnKernel(text, language, file.name)


def read_source_file(file: Path) -> str:
    """The text of a source file. Raises UsageError where it is none."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MOST_SOURCE_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the source {file}: {error}",
            hint="give a file, or a candidate of an earlier campaign: ID@best, ID/NUMBER",
        ) from error
    if not text.strip():
        raise UsageError(f"the source {file} is empty", hint="give the file of a kernel")
    if len(content) > MOST_SOURCE_BYTES:
        raise UsageError(f"the source {file} is larger than {MOST_SOURCE_BYTES >> 10} KiB")
    return text


def take_own(own: OwnKernel, problem: Problem) -> OwnKernel:
    """The kernel as a candidate for a problem: CUDA with host code gets its launch plan.

    Raises:
        UsageError: it is a kernel of another problem.
    """
    from ..sandbox.host_plan.convert import Converted, convert, is_published_form
    from .other_problem import ensure_for_problem

    ensure_for_problem(own.text, own.language, problem, own.name or "the source")
    if own.language != CUDA.name or not is_published_form(own.text):
        return own
    found = convert(own.text, problem)
    if isinstance(found, Converted):
        note = "; ".join((PLAN_WRITTEN, *found.notes))
        return OwnKernel(found.text, own.language, own.name, note)
    return OwnKernel(own.text, own.language, own.name, fault=found.sentence)


def _is_reference(name: str, file: Path) -> bool:
    """Whether it names a candidate and not a file."""
    is_named = name.endswith(names.BEST) or "/" in name or name.startswith("@")
    return is_named and not file.exists() and not file.suffix


def _read_recorded(name: str, home: Path) -> OwnKernel:
    from ..traces.store import Store

    with Store.open(home) as store:
        found = names.find(store, name)
        if found.candidate is None:
            raise UsageError(
                f"'{name}' is a campaign and no candidate", hint="name one: ID@best or ID/NUMBER"
            )
        with store.sheet(found.campaign) as sheet:
            language = sheet.entries[found.candidate].language
        text = store.get_blob(found.candidate).decode()
        return OwnKernel(text, language, name)
