"""Reads the tables of the hostile corpus. It knows the catalogue's ids and runs nothing.

Every row of the catalogue stands in exactly one of `native.toml` (a C++ candidate), `gpu.toml` (a
CUDA kernel), `impossible.toml` (cannot be written as native code) and `problems.toml` (a weakness
of a problem). `host.toml`, where there is one, may hold any row once more as host code.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kernelwright.traces.records import Depth, Status

HERE = Path(__file__).parent
CATALOGUE = tuple(
    f"{letter}{number}"
    for letter, count in (("A", 18), ("B", 17), ("C", 18), ("D", 9), ("E", 20))
    for number in range(1, count + 1)
)
"""The rows of verification.md §1."""
TABLES = ("native", "gpu", "impossible", "problems")


@dataclass(frozen=True)
class Candidate:
    """A hostile C++ file and what the referee must say of it."""

    id: str
    name: str
    file: str
    problem: str
    workload: str
    protocol: Depth
    status: Status
    check: tuple[str, ...]
    """One of these must occur in the reasons."""
    also: tuple[Status, ...] = ()
    """Statuses that are equally right; `why` says on which machine."""
    why: str = ""

    @property
    def path(self) -> Path:
        return HERE / "native" / self.file

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def statuses(self) -> tuple[Status, ...]:
        return (self.status, *self.also)


@dataclass(frozen=True)
class Shown:
    """A row without a candidate: why, and the test that shows it."""

    id: str
    name: str
    why: str
    test: str


@dataclass(frozen=True)
class Device:
    """A CUDA kernel; `why` says what must catch or disarm it."""

    id: str
    name: str
    file: str
    why: str

    @property
    def path(self) -> Path:
        return HERE / "gpu" / self.file


def _raw(table: str) -> list[dict[str, Any]]:
    content = tomllib.loads((HERE / f"{table}.toml").read_text("utf-8"))
    if set(content) != {"row"}:
        raise ValueError(f"{table}.toml holds {sorted(content)}, not only rows")
    return list(content["row"])


def ids(table: str) -> list[str]:
    """The ids of a table, in its order; whatever else its rows hold."""
    return [str(row["id"]) for row in _raw(table)]


def native() -> list[Candidate]:
    """The C++ candidates. Raises where a row would count a pass, or allows much without a why."""
    found = []
    for row in _raw("native"):
        check = row["check"]
        candidate = Candidate(
            **{
                **_known(row, Candidate),
                "protocol": Depth(row["protocol"]),
                "status": Status(row["status"]),
                "check": (check,) if isinstance(check, str) else tuple(check),
                "also": tuple(Status(status) for status in row.get("also", ())),
            }
        )
        if any(status.is_pass for status in candidate.statuses):
            raise ValueError(f"{candidate.file}: a hostile candidate cannot be expected to pass")
        if bool(candidate.also) != bool(candidate.why):
            raise ValueError(f"{candidate.file}: `also` and `why` go together")
        if not all(candidate.check):
            raise ValueError(f"{candidate.file}: an empty `check` occurs in everything")
        found.append(candidate)
    return found


def shown(table: str) -> list[Shown]:
    """The rows of `impossible` or `problems`."""
    return [Shown(**_known(row, Shown)) for row in _raw(table)]


def device() -> list[Device]:
    """The CUDA kernels."""
    return [Device(**_known(row, Device)) for row in _raw("gpu")]


def _known(row: dict[str, Any], kind: type) -> dict[str, Any]:
    unknown = set(row) - {field.name for field in fields(kind)}
    if unknown:
        raise ValueError(f"row {row['id']}: unknown keys {sorted(unknown)}")
    return dict(row)
