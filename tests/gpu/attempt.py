"""What a run of these tests came to: on which device, in which jail, and whether at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail

JAIL = "KERNELWRIGHT_JAIL"
"""The jail of the tests, as of `run`: `bare` where none works that confines."""
REQUIRED = "TEST_REQUIRE_GPU"
"""Set: a run that tries nothing on a device fails. `make test-gpu` sets it."""


@dataclass
class Attempt:
    """What was tried so far."""

    device: str = ""
    jails: set[str] = field(default_factory=set)
    """Of processes that were given kernels."""

    @property
    def has_run(self) -> bool:
        """Whether kernels were given to a device."""
        return bool(self.jails)

    def sentence(self) -> str:
        """For the end of the run."""
        where = f"on {self.device}" if self.device else "on a device: there is none to be had here"
        if not self.has_run:
            why = f"; {JAIL}=bare tries them without a jail" if self.device else ""
            return f"NOT A SINGLE KERNEL WAS RUN {where}{why}"
        bare = f", WITHOUT A JAIL as {JAIL} asks" if BareJail.name in self.jails else ""
        return f"kernels were run {where} ({', '.join(sorted(self.jails))}{bare})"


def asked_jail(environ: Mapping[str, str] = os.environ) -> Jail:
    """The jail that is asked for, else the best. Raises PrerequisiteError, UnknownNameError."""
    return choose(environ.get(JAIL) or "auto")


def is_weak_accepted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the referee may do with a jail that does not confine: only where it is asked for."""
    return environ.get(JAIL) == BareJail.name
