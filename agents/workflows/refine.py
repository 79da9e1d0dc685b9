# SPDX-License-Identifier: Apache-2.0
"""`refine`: `forge` without its Judge. One model edits its own last kernel on raw feedback.

It is the control that tells what a Judge is worth: the same chain, the same referee, the same caps.
"""

from __future__ import annotations

from . import driver, forge, own_start, steps
from .loop import Loop
from .rules import NoSettings, Questions, Rules


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    chained = forge.graph(steps.rounds_of(loop, forge.ROUNDS), has_judge=False)
    return own_start.begin(
        loop, lambda begun: driver.run(chained, loop, dict(forge.begin_from(begun)))
    )


def _questions(_chosen: NoSettings, rounds: int | None) -> Questions:
    return Questions(coder=forge.ROUNDS if rounds is None else rounds)


RULES = Rules(run, NoSettings, _questions)
