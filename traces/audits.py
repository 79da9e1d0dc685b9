# SPDX-License-Identifier: Apache-2.0
"""Puts an audit into one sentence: what was found, against what had been recorded.

Pure. Knows neither how an audit is made nor where the sentence is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from .events import AuditOutcome, CampaignAudited
from .fold import Entry
from .history import History
from .wording import speedup


def audit_sentence(entries: Mapping[str, Entry], audit: CampaignAudited) -> str:
    """`#3 holds: 1.84× (95 % 1.80–1.88) against torch eager; recorded 1.86× …`.

    Args:
        entries: of the campaign's candidates, of whom the audited one is told by its number.
    """
    entry = entries.get(audit.candidate)
    who = f"#{entry.number}" if entry else audit.candidate[:10]
    text = f"{who} {audit.outcome}: {'; '.join(_findings(audit))}"
    if audit.lacking:
        count = len(audit.lacking)
        text += f"; its record lacks {count} {'thing' if count == 1 else 'things'}"
    if audit.differences:
        text += f"; other than then: {', '.join(each.name for each in audit.differences)}"
    return text


def last_audit_sentence(history: History) -> str:
    """The sentence on the newest audit; empty where there was none."""
    if not history.audits:
        return ""
    return audit_sentence(history.entries, history.audits[-1].event)


def _findings(audit: CampaignAudited) -> list[str]:
    if audit.outcome in (AuditOutcome.FAILED, AuditOutcome.UNREPEATABLE):
        return [audit.reason]
    measurement = audit.verdict.measurement if audit.verdict else None
    found = []
    if measurement and measurement.headline:
        found.append(f"{speedup(measurement.headline)} against {measurement.best_baseline}")
    if audit.recorded:
        against = f" against {audit.recorded_against}" if audit.recorded_against else ""
        found.append(f"recorded {speedup(audit.recorded)}{against}")
    return found or ["verified, with no baseline to hold it against"]
