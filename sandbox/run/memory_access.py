# SPDX-License-Identifier: Apache-2.0
"""Runs the access build of a CUDA candidate once: races, and what each line asks of the memory.

The runtime in the candidate's process writes the report, so it is a claim: it can find fault with a
candidate and advise its author; it clears nobody. Figures are those of the device's rules applied
to the accesses as g++ compiled them, which may merge some that nvcc does not, and the other way.

A report names places in the library; which lines these are `addr2line` says, in a jail as well.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import PrerequisiteError
from ...kernelbench.dtypes import Kind, dtype_of
from ...kernelbench.problem import Arrays
from ..builders.compiler import find_compiler
from ..builders.cuda_source import FILE
from ..builders.model import Built, EmulatedVariant
from ..builders.workplace import run, workplace
from ..builders.workshop import Workshop
from ..isolation.model import End, Limits
from ..plan.model import ZERO_FILL
from . import ledger
from .emulated import emulated_program
from .ledger import MissingLane, Race, Unset, Writers
from .once import CallInputs, CallResult, byte_size, play

REPORT_BYTES = 1 << 20
_HEAD_WORDS = 6
"""Before the lines of a report, beside the sizes of the buffers."""
_MOST_LINES = 4096
_MOST = 1 << 62
"""No honest figure is as large."""
_KINDS = ("read", "write", "atomic")
_COUNTS = (
    "requests",
    "lanes",
    "sectors",
    "ideal_sectors",
    "wavefronts",
    "ideal_wavefronts",
    "from_l2",
)
_OF_ACCESSES = ("launch", "bytes", "buffers", *_COUNTS)
_FIGURES = {
    "global": _OF_ACCESSES,
    "shared": _OF_ACCESSES,
    "launch": ("launch", "kernel", "blocks", "counted", "warps", "requests", "longest"),
    "race": ("count", "buffer", "is_weak", "is_flight", "launch"),
    "unset": ("code", "line", "buffer", "count"),
    "missing": ("line", "thread", "lane", "count"),
    "unwritten": ("code", "line", "count"),
}
"""What each line of a report must tell, beside the places in the code."""


@dataclass(frozen=True)
class Accesses:
    """What one line of the source does with one buffer, over the whole call."""

    line: int
    space: str
    """`global` (tensors and scratch) or `shared`."""
    operation: str
    """`read`, `write` or `atomic`."""
    bytes: int
    """Of one thread's access."""
    requests: int
    """Accesses of a warp, of one or more of its lanes at once."""
    lanes: int
    """Over all requests."""
    sectors: int
    """32-byte sectors of global memory that the requests touch."""
    ideal_sectors: int
    """As many as the same bytes would take side by side."""
    wavefronts: int
    """Turns of shared memory that the requests take: more than the ideal are bank conflicts."""
    ideal_wavefronts: int
    from_l2: int
    """Sectors that are written, or that the block had not read before or had read long ago."""
    buffers: tuple[str, ...] = ()
    """Tensors and scratch buffers; several where one access goes to either."""

    @property
    def sectors_per_request(self) -> float:
        """At best 4 for 32 lanes of 4 bytes."""
        return self.sectors / self.requests

    @property
    def wavefronts_per_request(self) -> float:
        """1 without bank conflicts, 32 at worst, for 32 lanes of 4 bytes."""
        return self.wavefronts / self.requests


@dataclass(frozen=True)
class LaunchCount:
    """What one launch of a kernel did, as far as it was watched."""

    kernel: int
    """Index into the kernels of the candidate."""
    blocks: int
    """Of the grid."""
    counted: int
    """Blocks that were watched, spread over the grid."""
    warps: int
    """In the watched blocks."""
    longest: float
    """Requests to global memory by the warp with the most of them, over the mean of all warps."""
    accesses: tuple[Accesses, ...]
    """Of the watched blocks."""

    @property
    def scale(self) -> float:
        """What makes the counts those of the whole grid."""
        return self.blocks / self.counted if self.counted else 0.0


@dataclass(frozen=True)
class AccessReport:
    """What the access build saw in one call."""

    accesses: tuple[Accesses, ...]
    """Of all launches together."""
    launches: tuple[LaunchCount, ...]
    """Each launch of a kernel, in order; filling with zeros is none."""
    races: tuple[Race, ...]
    """Those that are mistakes."""
    unwritten: Mapping[int, int]
    """Line → reads of shared memory that nobody in the block had written."""
    outputs: Arrays = field(repr=False)
    weak_races: tuple[Race, ...] = ()
    """Those that may be meant."""
    missing: tuple[MissingLane, ...] = ()
    unset: tuple[Unset, ...] = ()
    writers: Writers | None = field(default=None, repr=False)
    """Where they were asked for."""


def examine(
    workshop: Workshop,
    built: Built,
    call: CallInputs,
    *,
    limits: Limits,
    timeout_s: float,
    schedule: str = "order",
    budget: int = 0,
    writers: bool = False,
) -> AccessReport:
    """Calls the access build once and reads its report.

    Args:
        built: Built as EmulatedVariant.ACCESS.
        call: What it is given; small, because every access is told.
        limits: Of the process.
        timeout_s: Of the call.
        schedule: Which threads and blocks go first.
        budget: Accesses of threads after which no more blocks of a launch are watched, or run
            where no later launch could go astray for it; what the call answers is then
            unfinished, and races are not looked for. 0: no limit.
        writers: Whether to tell who wrote each element of the outputs; not within a budget.

    Raises:
        RunFault: the process did not answer.
        PrerequisiteError: there is no `addr2line` here.
        SandboxError: the jail or our own runner failed.
    """
    program = emulated_program(workshop, built, variant=EmulatedVariant.ACCESS, schedule=schedule)
    answer = play(
        workshop,
        program,
        replace(call, report=_head(call, budget, writers)),
        limits=limits,
        timeout_s=timeout_s,
    )
    records = _parse_report(answer, call)
    tables = ledger.tables(answer.report[REPORT_BYTES:], _outputs(call)) if writers else {}
    lines = _Lines(workshop, built, records, ledger.codes(tables))
    launches = [one for one in call.launches.launches if one.kernel != ZERO_FILL]
    races = ledger.races(records, lines.find_line, _buffers(call), launches)
    return AccessReport(
        accesses=_accesses(records, lines, _buffers(call)),
        launches=_launches(records, lines, _buffers(call)),
        races=tuple(race for race in races if not race.is_weak),
        weak_races=tuple(race for race in races if race.is_weak),
        unwritten=_sum_unwritten(records, lines),
        missing=ledger.parse_missing(records),
        unset=ledger.parse_unset(records, lines.find_line, _buffers(call)),
        writers=Writers(tables, call.launches, lines.find_line) if writers else None,
        outputs=answer.outputs,
    )


def _outputs(call: CallInputs) -> dict[str, int]:
    """Bytes of each output."""
    outputs = call.problem.outputs
    return {t.name: byte_size(t.extent(call.axes), t.dtype) for t in outputs}


def _sizes(call: CallInputs) -> list[int]:
    sizes = [byte_size(t.extent(call.axes), t.dtype) for t in call.problem.tensors]
    return sizes + [byte_size(s.shape, s.dtype) for s in call.launches.scratch]


def _buffers(call: CallInputs) -> list[str]:
    names = [tensor.name for tensor in call.problem.tensors]
    return names + [scratch.name for scratch in call.launches.scratch]


def _head(call: CallInputs, budget: int, writers: bool) -> bytes:
    """The report as the runtime finds it: its size, the sizes of the buffers, and what is asked.

    Of an unfinished launch, sums that are missing change nothing; indices that are would.
    """
    sizes = _sizes(call)
    has_indices = any(
        dtype_of(s.dtype).kind in (Kind.SIGNED, Kind.UNSIGNED) for s in call.launches.scratch
    )
    more = ledger.table_bytes(_outputs(call).values()) if writers else 0
    words = (
        REPORT_BYTES,
        len(sizes),
        *sizes,
        budget,
        has_indices,
        len(call.problem.inputs),
        REPORT_BYTES if writers else 0,
    )
    head = struct.pack(f"<{len(words)}q", *words)
    return head + bytes(REPORT_BYTES + more - len(head))


def _parse_report(answer: CallResult, call: CallInputs) -> list[dict[str, Any]]:
    """The report's lines, as far as they are what they should be."""
    start = 8 * (_HEAD_WORDS + len(_sizes(call)))
    (length,) = struct.unpack_from("<q", answer.report)
    end = min(REPORT_BYTES, start + max(0, length))
    text = answer.report[start:end].decode("ascii", "replace")
    told = []
    for line in text.splitlines()[:_MOST_LINES]:
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if _is_sound(one):
            told.append(one)
    return told


def _is_sound(one: Any) -> bool:
    """Whether it has the figures of what it says it is; a candidate can write there too."""
    what = one.get("what") if isinstance(one, dict) else None
    if not isinstance(what, str) or what not in _FIGURES:
        return False
    figures = [one.get(name) for name in _FIGURES[what]]
    places: list[Any] = [one] if what in ("global", "shared", "unset") else []
    if what == "race":
        places = [one.get("first"), one.get("second")]
        for pair in (one.get("threads"), one.get("blocks")):
            if not isinstance(pair, list) or len(pair) != 2:
                return False
            figures += pair
    for place in places:
        if not isinstance(place, dict) or place.get("kind") not in _KINDS:
            return False
        figures += [place.get("code"), place.get("line")]
    return all(type(each) is int and 0 <= each < _MOST for each in figures)


class _Lines:
    """Lines of the source for places in the library."""

    def __init__(
        self,
        workshop: Workshop,
        built: Built,
        told: Iterable[dict[str, Any]],
        more: set[int],
    ) -> None:
        places = [one for each in told for one in (each, each.get("first"), each.get("second"))]
        codes = more | {int(p["code"]) for p in places if isinstance(p, dict) and p.get("code")}
        self._known = _addr2line(workshop, built, sorted(codes)) if codes else {}

    def find_line(self, place: Mapping[str, Any]) -> int:
        """0 where the place belongs to no line of the candidate."""
        return int(place["line"]) or self._known.get(int(place["code"]), 0)


def _addr2line(workshop: Workshop, built: Built, codes: list[int]) -> dict[int, int]:
    compiler = find_compiler()
    with workplace() as place:
        library = place.folder / "candidate.so"
        library.write_bytes(built.artefact)
        command = ["/usr/bin/addr2line", "-a", "-i", "-e", library.name, *map(hex, codes)]
        outcome = run(workshop, command, compiler, place)
    if outcome.end is not End.EXITED or outcome.code != 0:
        raise PrerequisiteError(
            f"addr2line did not answer: {outcome.stderr.decode(errors='replace')[:200]}",
            hint="install binutils (apt install binutils, dnf install binutils)",
        )
    known: dict[int, int] = {}
    code = 0
    for line in outcome.stdout.decode(errors="replace").splitlines():
        if line.startswith("0x"):
            code = int(line, 16)
        elif code not in known and (found := re.search(rf"(?:^|/){re.escape(FILE)}:(\d+)", line)):
            # Inlined calls come from the inside out: the first line of the candidate is it.
            known[code] = int(found[1])
    return known


def _accesses(
    told: Iterable[dict[str, Any]], lines: _Lines, buffers: list[str]
) -> tuple[Accesses, ...]:
    """One for each line, kind of memory, operation, width and buffer."""
    sums: dict[tuple[int, str, str, int, int], dict[str, int]] = {}
    for one in told:
        if one["what"] not in ("global", "shared"):
            continue
        kind, size, bits = str(one["kind"]), int(one["bytes"]), int(one["buffers"])
        key = lines.find_line(one), one["what"], kind, size, bits
        total = sums.setdefault(key, dict.fromkeys(_COUNTS, 0))
        for name in _COUNTS:
            total[name] += int(one[name])
    found = []
    for (line, space, kind, size, bits), total in sorted(sums.items()):
        names = tuple(name for i, name in enumerate(buffers) if bits >> i & 1)
        found.append(Accesses(line, space, kind, size, buffers=names, **total))
    return tuple(found)


def _launches(
    told: list[dict[str, Any]], lines: _Lines, buffers: list[str]
) -> tuple[LaunchCount, ...]:
    found = []
    for one in told:
        if one["what"] != "launch":
            continue
        own = [each for each in told if each.get("launch") == one["launch"]]
        warps, requests = int(one["warps"]), int(one["requests"])
        found.append(
            LaunchCount(
                kernel=int(one["kernel"]),
                blocks=int(one["blocks"]),
                counted=int(one["counted"]),
                warps=warps,
                longest=int(one["longest"]) * warps / requests if requests else 1.0,
                accesses=_accesses(own, lines, buffers),
            )
        )
    return tuple(found)


def _sum_unwritten(told: Iterable[dict[str, Any]], lines: _Lines) -> dict[int, int]:
    sums: dict[int, int] = {}
    for one in told:
        if one["what"] == "unwritten":
            line = lines.find_line(one)
            sums[line] = sums.get(line, 0) + int(one["count"])
    return sums
