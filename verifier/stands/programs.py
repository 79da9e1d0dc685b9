# SPDX-License-Identifier: Apache-2.0
"""From a candidate's source to the program that a runner process is made of, for each language.

It knows which builder and which runner a language has, and what a candidate's language says of
its tier. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...kernelbench.languages import CPP, PYTHON, Language, language_of
from ...kernelbench.problem import Problem
from ...sandbox.builders import cpp, python
from ...sandbox.builders.model import BuildFailed, BuildVariant, Built
from ...sandbox.plan.faults import PlanFault
from ...sandbox.plan.pattern_plan import PatternPlan, read_pattern_plan
from ...sandbox.plan.source_knobs import explain_knobs
from ...sandbox.run.host_code import host_program
from ...sandbox.run.native import native_program
from ...sandbox.run.program import Program
from ..failure import Failed, built_or_failed
from .gpu_candidates import status_of
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
    program = BUILT[language_of(language)](session, source)
    return replace(program, instances=session.pace.instances)


def build_cpp(
    session: Session, source: str, variant: BuildVariant = BuildVariant.RELEASE
) -> Built | BuildFailed:
    """A C++ source, built with the function that makes its plan where it declares one.

    Raises:
        Failed: its plan cannot be, or its knobs.
    """
    _ensure_knobs(source, CPP)
    problem, plan = session.problem, pattern_plan(session.problem, source)
    return cpp.build(
        session.workshop,
        source,
        cpp.prototype(problem, takes_plan=plan is not None),
        problem.name,
        prepares=cpp.preparing(problem) if plan else None,
        variant=variant,
    )


def pattern_plan(problem: Problem, source: str) -> PatternPlan | None:
    """The plan that a C++ source declares; None where it declares none. Raises Failed."""
    found = read_pattern_plan(source, problem)
    if isinstance(found, PlanFault):
        raise Failed(status_of(found), found.sentence)
    return found


def _ensure_knobs(source: str, language: Language) -> None:
    """Raises Failed where a knob that may be another changes nothing, or disagrees."""
    if fault := explain_knobs(source, language):
        raise Failed(status_of(fault), fault.sentence)


def _cpp(session: Session, source: str) -> Program:
    return native_program(session.workshop, built_or_failed(build_cpp(session, source)))


def _python(session: Session, source: str) -> Program:
    _ensure_knobs(source, PYTHON)
    module = built_or_failed(python.check(source, session.problem))
    return host_program(session.workshop, module.built, session.problem, module.entry)


BUILT: dict[Language, Callable[[Session, str], Program]] = {
    CPP: _cpp,
    PYTHON: _python,
}
"""How each language that runs on the target `cpu` becomes a program."""
