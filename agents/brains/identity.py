# SPDX-License-Identifier: Apache-2.0
"""Holds prompts to one candidate: the source, the verdict, the profile and the advice on it."""

from __future__ import annotations

from ...errors import SandboxError
from ...traces.records import Advice, candidate_id
from ..roles import Member


def ensure_one(member: Member, base: Member | None = None, advice: Advice | None = None) -> None:
    """Raises SandboxError unless everything at hand is about the same candidate.

    Args:
        base: The candidate of the assignment, where there is one.
        advice: The Judge's words that the prompt is going to hold.
    """
    about = {
        "the source": candidate_id(member.source),
        "the verdict and its profile": member.verdict.candidate,
        **({"the assignment": base.candidate} if base else {}),
        **({"the advice": advice.candidate} if advice else {}),
    }
    for what, candidate in about.items():
        if candidate != member.candidate:
            raise SandboxError(
                f"a prompt about candidate {member.candidate[:12]} was about to hold {what} of "
                f"{candidate[:12]}",
                hint="this is a fault of the workflow; nothing was asked, please report it",
            )
