"""A plugin of pytest that keeps each test as it ends: what a hang comes after is not lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .causes import explain
from .records import Records
from .work import CAUSE

RECORDS = "FIRST_CONTACT_RECORDS"
"""The variable that names the bundle's folder."""
PART = "tests"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Each test once: its call, or what it did not get to its call for."""
    if report.when != "call" and report.outcome == "passed":
        return
    figures: dict[str, object] = {"outcome": report.outcome, "seconds": round(report.duration, 2)}
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        figures["why"] = report.longrepr[-1]
    if report.outcome == "failed":
        figures[CAUSE] = explain(report.longreprtext)._asdict()
    Records(Path(os.environ[RECORDS])).add(PART, report.nodeid, **figures)
