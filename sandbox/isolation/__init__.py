# SPDX-License-Identifier: Apache-2.0
"""The jails: running a command that is not trusted, and measuring how well that is kept."""

from __future__ import annotations

from .bare import BareJail
from .bubblewrap import BubblewrapJail
from .canary import probe
from .choose import choose
from .landlock import LandlockJail
from .model import Confinement, End, Jail, Job, Limits, Outcome
from .seccomp import build_filter

__all__ = [
    "BareJail",
    "BubblewrapJail",
    "Confinement",
    "End",
    "Jail",
    "Job",
    "LandlockJail",
    "Limits",
    "Outcome",
    "build_filter",
    "choose",
    "probe",
]
