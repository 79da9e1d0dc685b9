# SPDX-License-Identifier: Apache-2.0
"""Whether a campaign runs, has finished or was cut off, in words."""

from __future__ import annotations

from dataclasses import dataclass

from .events import EVALUATION


@dataclass(frozen=True)
class CampaignState:
    """Whether a campaign runs."""

    word: str
    """`running`, `finished` or `cut off`."""
    detail: str
    why: str = ""
    """What ended it, in a word; empty where it has not finished."""

    @property
    def told(self) -> str:
        """In a column: `finished (seconds)`."""
        return f"{self.word} ({self.why})" if self.why else self.word


def state_of(
    campaign: str, workflow: str, evaluated: int, stopped_by: str | None, *, is_running: bool
) -> CampaignState:
    """What the campaign does now.

    Args:
        stopped_by: what ended it, if it has ended.
    """
    if is_running:
        return CampaignState("running", f"{evaluated} evaluated so far")
    if stopped_by:
        return CampaignState("finished", f"stopped by: {stopped_by}", stopped_by)
    if workflow == EVALUATION:
        return CampaignState("cut off", "its process ended before there was a verdict")
    return CampaignState("cut off", f"go on with kernelwright run --resume {campaign}")
