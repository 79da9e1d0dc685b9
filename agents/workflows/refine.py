"""`refine`: `forge` without its Judge. One model edits its own last kernel on raw feedback.

It is the control that tells what a Judge is worth: the same chain, the same referee, the same caps.
"""

from __future__ import annotations

from . import driver, forge
from .loop import Loop


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return driver.run(forge.graph(has_judge=False), loop, dict(forge.START_STATE))
