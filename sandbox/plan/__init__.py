# SPDX-License-Identifier: Apache-2.0
"""Launch plans: what a device-only candidate declares about its launches, as data."""

from __future__ import annotations

from .built import check_built
from .declared import Plan
from .faults import PlanFault, PlanFaultKind
from .fit import suspicions
from .model import Launches
from .parse import parse
from .resolve import resolve

__all__ = [
    "Launches",
    "Plan",
    "PlanFault",
    "PlanFaultKind",
    "check_built",
    "parse",
    "resolve",
    "suspicions",
]
