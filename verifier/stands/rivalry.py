# SPDX-License-Identifier: Apache-2.0
"""What is done where the champion's own process fails beside a candidate.

The candidate must neither pay for it nor gain by it: one that starves its rival would be crowned
without a comparison. So the champion is looked at alone, in fresh processes, while the candidate is
not there. Only what fails there as well has lost its standing. Knows no builder and no runner.
"""

from __future__ import annotations

from collections.abc import Callable

from ...traces.records import Status, Verdict
from ..failure import ChampionFailed
from ..request import Order

FALLEN = (
    Status.INCORRECT,
    Status.BUILD_FAILED,
    Status.CRASHED,
    Status.TIMED_OUT,
    Status.RESOURCE,
    Status.PROTOCOL_ERROR,
)
"""What shows that a champion no longer holds; a busy machine or a fault of ours does not."""


def judge_order(
    order: Order,
    look: Callable[[Order], Verdict],
    unknown: Callable[[str], Verdict],
) -> Verdict:
    """The verdict on an order, whatever becomes of the champion meanwhile.

    Args:
        look: Judges an order. Raises ChampionFailed.
        unknown: The verdict where the failure is nobody's that could be named.
    """
    try:
        return look(order)
    except ChampionFailed as failed:
        if order.protocol.is_quick:
            # It shows where the candidate stands; whether the champion holds, a confirmation asks.
            found = look(order.model_copy(update={"champion": ""}))
            said = f"beside the champion: it failed there ({failed})"
            return found.model_copy(update={"unchecked": (*found.unchecked, said)})
        alone = look(order.model_copy(update={"source": order.champion, "champion": ""}))
    if alone.status in FALLEN:
        found = look(order.model_copy(update={"champion": ""}))
        return found.model_copy(update={"champion": alone})
    try:
        return look(order)
    except ChampionFailed as again:
        return unknown(
            f"the champion failed beside it twice, and not alone ({alone.status}): {again}; they "
            "could not be compared"
        )
