# SPDX-License-Identifier: Apache-2.0
"""Whether a device is well: a fresh process of ours sets, copies and compares memory on it.

It is asked after a hang or a failure of the device, and before a quarantined one is used again.
Nothing here resets anything.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...builders.workshop import Workshop
from ..binary import device_runner_binary
from .device_files import DeviceFiles

PROBE_S = 60.0
"""A driver that nobody keeps loaded takes seconds to start; a hung one takes for ever."""
_GONE_S = 5.0


@dataclass(frozen=True)
class Health:
    """What the probe found."""

    reason: str = ""
    """Why the device cannot be used; empty: it is well."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """name, cuda, memory_bytes, major, minor, sms, l2_bytes, has_watchdog, reads_host_memory."""

    @property
    def is_well(self) -> bool:
        """Whether it can be used."""
        return not self.reason

    @property
    def reads_host_memory(self) -> bool:
        """Whether kernels can reach all of their process's memory, which is more than buffers."""
        return self.facts.get("reads_host_memory") == "1"


def probe(workshop: Workshop, access: DeviceFiles, *, timeout_s: float = PROBE_S) -> Health:
    """Tries the device. Raises PrerequisiteError where our runner cannot be compiled."""
    command = [str(device_runner_binary(workshop)), "probe", str(access.library)]
    process = subprocess.Popen(
        [*command, str(access.ordinal)],
        env=access.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        told, words = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Health(_let_go(process, timeout_s))
    if process.returncode != 0:
        last = (words.strip().splitlines() or ["it said nothing"])[-1]
        return Health(f"the probe ended with {process.returncode}: {last[:300]}")
    pairs = (line.partition(" ") for line in told.splitlines())
    return Health(facts={name: value for name, _, value in pairs})


def _let_go(process: subprocess.Popen[str], timeout_s: float) -> str:
    """Kills a probe that hangs; one that the kernel does not let die is left behind."""
    process.kill()
    try:
        process.communicate(timeout=_GONE_S)
    except subprocess.TimeoutExpired:
        return f"the probe hangs in the driver and cannot be killed (pid {process.pid})"
    return f"the probe had no answer within {timeout_s:g} s"
