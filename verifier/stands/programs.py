# SPDX-License-Identifier: Apache-2.0
"""From a candidate's source to the program that a runner process is made of, for each language.

It knows which builder and which runner a language has, and what a candidate's language says of
its tier. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from ...kernelbench.languages import CPP, PYTHON, Language, language_of
from ...sandbox.builders import cpp, python
from ...sandbox.run.host_code import host_program
from ...sandbox.run.native import native_program
from ...sandbox.run.program import Program
from ..failure import built_or_failed
from .session import Session


def build_program(session: Session, source: str, language: str) -> Program:
    """The program of one source.

    Args:
        language: One of BUILT.

    Raises:
        Failed: it does not build.
        PrerequisiteError: this machine lacks what the language needs.
        SandboxError, StorageError: the harness failed, not the source.
    """
    return BUILT[language_of(language)](session, source)


def _cpp(session: Session, source: str) -> Program:
    built = cpp.build(
        session.workshop, source, cpp.prototype(session.problem), session.problem.name
    )
    return native_program(session.workshop, built_or_failed(built))


def _python(session: Session, source: str) -> Program:
    module = built_or_failed(python.check(source, session.problem))
    return host_program(session.workshop, module.built, session.problem, module.entry)


BUILT: dict[Language, Callable[[Session, str], Program]] = {
    CPP: _cpp,
    PYTHON: _python,
}
"""How each language that runs on the target `cpu` becomes a program."""
