# SPDX-License-Identifier: Apache-2.0
"""What a workflow is, and the one table of them.

Here stand the facts that a help text prints. The rules stand in the workflow's own module, which
imports what graphs are made of, and are loaded when they are first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...errors import UnknownNameError

if TYPE_CHECKING:
    from .rules import Rules


@dataclass(frozen=True)
class Workflow:
    """One way in which Coder, Judge and referee take turns."""

    name: str
    """Of its module, too."""
    version: int
    """It rises when the same answers would lead elsewhere."""
    summary: str
    """In a line, for who chooses."""
    has_model: bool | None = None
    """Whether its Coder must ask a model, or must not; None: either will do."""

    @cached_property
    def rules(self) -> Rules[Any]:
        """What it asks, takes and does."""
        found: Rules[Any] = import_module(f".{self.name}", __package__).RULES
        return found


WORKFLOWS = {
    workflow.name: workflow
    for workflow in (
        Workflow(
            "tune",
            3,
            "searches hand-written recipes by what was timed, without a model [default]",
            has_model=False,
        ),
        Workflow(
            "evolve",
            3,
            "islands of candidates, the fittest of which have offspring [default with a model]",
            has_model=True,
        ),
        Workflow("forge", 3, "one kernel improved step by step, each step advised by the Judge"),
        Workflow("refine", 2, "one kernel improved step by step, without a Judge"),
        Workflow("best_of_n", 3, "independent first answers; the best one counts"),
        Workflow(
            "contrast", 3, "shows the Coder pairs of its own kernels, a faster and a slower one"
        ),
        Workflow("features", 3, "combines named techniques and learns which of them pay"),
        Workflow(
            "transpile",
            3,
            "begins from a CUDA or PyTorch source (--from FILE) and tunes the translation",
            has_model=True,
        ),
    )
}
"""By name, in the order of a help text."""


def find_workflow(name: str) -> Workflow:
    """The workflow of that name; UnknownNameError with the known ones."""
    if name not in WORKFLOWS:
        raise UnknownNameError.for_name("workflow", name, WORKFLOWS)
    return WORKFLOWS[name]
