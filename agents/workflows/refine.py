"""`refine`: `forge` without its Judge. One model edits its own last kernel on raw feedback.

It is the control that tells what a Judge is worth: the same chain, the same referee, the same caps.
"""

from __future__ import annotations

from . import driver, forge
from .loop import Loop
from .rules import NoSettings, Questions, Rules


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return driver.run(forge.graph(has_judge=False), loop, dict(forge.START_STATE))


def _questions(_chosen: NoSettings, rounds: int | None) -> Questions:
    return Questions(coder=forge.ROUNDS if rounds is None else rounds)


RULES = Rules(run, NoSettings, _questions)
