# SPDX-License-Identifier: Apache-2.0
"""The part of a prompt that grows with the campaign; it stands behind what stays the same."""

from __future__ import annotations

from ...traces.place import Place
from ..roles import Lineage
from .digest_text import told_digest
from .history_text import told_history


def past(history: Lineage, place: Place) -> dict[str, str]:
    """The values of `_past.md`."""
    return {
        "history": told_history(history, place),
        "campaign": told_digest(history.campaign, place),
    }
