# SPDX-License-Identifier: Apache-2.0
"""One thing that the doctor tried, and how it bears on a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How a finding bears on a run."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One thing that was tried."""

    topic: str
    level: Severity
    text: str
    fix: str = ""

    def document(self) -> dict[str, str]:
        """As JSON."""
        return {key: str(value) for key, value in asdict(self).items()}
