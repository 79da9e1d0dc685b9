# SPDX-License-Identifier: Apache-2.0
"""The system calls by name, for the two machines that there are filters for."""

from __future__ import annotations

import functools
import platform
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import PrerequisiteError

_TABLE = Path(__file__).with_name("calls.toml")


class Machine(NamedTuple):
    """How programs call the kernel on one kind of processor."""

    audit_arch: int
    has_x32: bool
    numbers: Mapping[str, int]
    """Of the calls that it has, by name."""

    def list_numbers(self, names: Iterable[str]) -> list[int]:
        """Of those among the names that it has, in order."""
        return sorted(self.numbers[name] for name in names if self.numbers[name] >= 0)

    @property
    def highest(self) -> int:
        """The newest call that the table knows."""
        return max(self.numbers.values())


_KINDS = {"x86_64": (0xC000003E, True), "aarch64": (0xC00000B7, False)}
MACHINES = tuple(_KINDS)


def machine_of(name: str = "") -> Machine:
    """The machine of that name, as `platform.machine()` says it; empty: this one.

    Raises:
        PrerequisiteError: there is no table for it.
    """
    name = name or platform.machine()
    if name not in _KINDS:
        raise PrerequisiteError(
            f"there is no system-call filter for the machine '{name}'",
            hint=f"run on one of: {', '.join(sorted(_KINDS))}",
        )
    return _load(name)


@functools.cache
def _load(name: str) -> Machine:
    column = MACHINES.index(name)
    table = tomllib.loads(_TABLE.read_text("utf-8"))
    return Machine(*_KINDS[name], {call: numbers[column] for call, numbers in table.items()})


def split_names(*groups: str) -> tuple[str, ...]:
    """Names of calls, as lists write them: with spaces between them."""
    return tuple(name for group in groups for name in group.split())


def name_call(number: int) -> str:
    """What people call it; one that this table does not know goes by its number."""
    known = (name for name, own in machine_of().numbers.items() if own == number >= 0)
    return next(known, f"number {number}")
