# SPDX-License-Identifier: Apache-2.0
"""Takes away what a model thought aloud before its answer, where a server left it in the text."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMES = r"(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think)"
_OPEN = re.compile(rf"\s*(?:<({_NAMES})>|\[(THINK)\])", re.I)
_ORPHAN = re.compile(
    rf"^[ \t]*(?:</{_NAMES}>|\[/THINK\])|(?:</{_NAMES}>|\[/THINK\])[ \t]*$", re.I | re.M
)


class Spoken(NamedTuple):
    """What is left of a reply."""

    text: str
    had_thoughts: bool
    is_unclosed: bool
    """The reply ends in the middle of a thought; nothing is left."""


def without_thinking(text: str) -> Spoken:
    """The reply behind its leading thoughts.

    Some chat templates put the opening tag into the prompt, so that a reply has only the closing
    one: everything up to the last such tag at the start or the end of a line is thought, too.
    """
    at = 0
    while True:
        if opened := _OPEN.match(text, at):
            close = f"[/{opened[2]}]" if opened[2] else f"</{opened[1]}>"
            closed = re.compile(re.escape(close), re.I).search(text, opened.end())
            if closed is None:
                return Spoken("", had_thoughts=True, is_unclosed=True)
            at = closed.end()
        elif orphans := list(_ORPHAN.finditer(text, at)):
            at = orphans[-1].end()
        else:
            return Spoken(text[at:], at > 0, is_unclosed=False)
