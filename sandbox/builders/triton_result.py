# SPDX-License-Identifier: Apache-2.0
"""Reads what a Triton build has left, none of which is trusted.

Whoever wrote it ran the candidate's code: the launches are a claim about launches, as a plan is,
and are held against the cubins, the tensors and the target's limits here.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...kernelbench.dtypes import DTYPES, dtype_of
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.targets import Architecture, Vendor
from ..plan import limits
from ..plan.model import ZERO_FILL, Argument, ArgumentKind, Launch, Launches, Scratch
from . import code_object, cubin, diagnostics
from .model import Built, DeviceBuilt, KernelFacts
from .warm import LeftBehind

CUBIN_BYTES = 32 << 20
CLAIM_BYTES = 8 << 20
LISTING_BYTES = 16 << 20
LOG_BYTES = 64 << 10
MAX_SCRATCH = 64
"""Buffers: a recording may make more of them than a plan declares."""

_Word = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Extent = tuple[_Word, _Word, _Word]
_Text = Annotated[str, Field(max_length=200)]
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


_Model = TypeVar("_Model", bound=BaseModel)
_ENTRIES = {Vendor.NVIDIA: cubin.entries, Vendor.AMD: code_object.entries}


class ClaimError(Exception):
    """What the build wrote cannot be what a build writes, or no device would take it."""


class _Claim(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Kernel(_Claim):
    name: _Text
    symbol: _Text
    cubin: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    constants: dict[_Text, _Text]
    warps: int
    stages: int


class _Scratch(_Claim):
    name: _Text
    dtype: _Text
    shape: Annotated[list[_Word], Field(max_length=16)]


class _Recorded(_Claim):
    kernels: Annotated[list[_Kernel], Field(max_length=1024)]
    launches: Annotated[
        list[tuple[_Word, _Extent, _Extent, _Word, _Extent, list[tuple[_Word, _Word, _Word]]]],
        Field(max_length=1024),
    ]
    scratch: Annotated[list[_Scratch], Field(max_length=MAX_SCRATCH)]
    outcome: Literal["built"]


class _Tuned(_Claim):
    kernel: _Text
    chosen: int
    configurations: list[Annotated[str, Field(max_length=2000)]]


class BuildOutcome(_Claim):
    """How the whole build went."""

    outcome: Literal["built", "failed", "unsupported"]
    reason: str = ""
    configurations: list[_Tuned] = Field(default_factory=list)


@dataclass(frozen=True)
class Configurations:
    """The configurations of an autotuned kernel; which one was built is a knob."""

    kernel: str
    chosen: int
    configurations: tuple[str, ...]
    """`BLOCK: 64, num_warps: 4, num_ctas: 1, num_stages: 3`."""


class BuiltPart(NamedTuple):
    """What one structure came to."""

    device: DeviceBuilt
    launches: Launches


def outcome(left: LeftBehind) -> BuildOutcome:
    """Raises ClaimError where it says nothing."""
    return _parse(BuildOutcome, left, "result.json")


def log(left: LeftBehind) -> str:
    """What the build and the candidate printed: the head, for people."""
    return diagnostics.clean((left.read("log", LOG_BYTES) or b"").decode(errors="replace"))


def part(
    left: LeftBehind,
    number: int,
    problem: Problem,
    structure: Structure,
    architecture: Architecture,
    compiler: str,
) -> BuiltPart:
    """The recording of structure `number`. Raises ClaimError."""
    claim = _parse(_Recorded, left, f"structure{number}.json")
    cubins, kernels = _device(claim.kernels, left, compiler, architecture.vendor)
    scratch = tuple(_scratch(each) for each in claim.scratch)
    sizes = {
        ArgumentKind.TENSOR: [
            math.prod(t.extent(structure.axes)) * dtype_of(t.dtype).bytes for t in problem.tensors
        ],
        ArgumentKind.SCRATCH: [math.prod(s.shape) * dtype_of(s.dtype).bytes for s in scratch],
    }
    if sum(sizes[ArgumentKind.SCRATCH]) > limits.MAX_SCRATCH_BYTES:
        total = sum(sizes[ArgumentKind.SCRATCH])
        raise ClaimError(
            f"the host code makes {total} bytes of tensors, at most {limits.MAX_SCRATCH_BYTES} "
            "are lent"
        )
    launches = []
    for kernel, grid, block, shared, cluster, arguments in claim.launches:
        made = Launch(kernel, grid, block, shared, cluster, tuple(map(_argument, arguments)))
        _check(made, kernels, sizes, architecture)
        launches.append(made)
    device = DeviceBuilt(architecture.build_name, cubins, kernels)
    return BuiltPart(device, Launches(tuple(k.name for k in kernels), tuple(launches), scratch))


def join_parts(parts: Sequence[BuiltPart]) -> tuple[DeviceBuilt, tuple[Launches, ...]]:
    """All parts over one list of cubins and kernels, with what they share once."""
    cubins = {one.sha256: one for each in parts for one in each.device.cubins}
    places = {digest: place for place, digest in enumerate(cubins)}
    kernels: dict[tuple[str, int, str], KernelFacts] = {}
    moves = []
    for each in parts:
        keys = []
        for facts in each.device.kernels:
            place = places[each.device.cubins[facts.cubin].sha256]
            keys.append((facts.symbol, place, facts.name))
            kernels.setdefault(keys[-1], replace(facts, cubin=place))
        moves.append(keys)
    numbers = {key: number for number, key in enumerate(kernels)}
    names = _make_distinct([facts.name for facts in kernels.values()])
    known = [replace(facts, name=name) for facts, name in zip(kernels.values(), names, strict=True)]
    device = DeviceBuilt(
        parts[0].device.architecture,
        tuple(cubins.values()),
        tuple(known),
        is_cached=all(each.device.is_cached for each in parts),
    )
    launches = tuple(
        _renumber(each.launches, [numbers[key] for key in keys], names)
        for each, keys in zip(parts, moves, strict=True)
    )
    return device, launches


def _parse(model: type[_Model], left: LeftBehind, name: str) -> _Model:
    raw = left.read(name, CLAIM_BYTES)
    if raw is None:
        raise ClaimError(f"the build left no {name}")
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ClaimError(f"{name} is not what a build writes: {where}: {first['msg']}") from error


def _device(
    claimed: Sequence[_Kernel], left: LeftBehind, compiler: str, vendor: Vendor
) -> tuple[tuple[Built, ...], tuple[KernelFacts, ...]]:
    digests = list(dict.fromkeys(kernel.cubin for kernel in claimed))
    cubins = [_cubin(left, digest, compiler) for digest in digests]
    kernels = []
    for kernel in claimed:
        place = digests.index(kernel.cubin)
        try:
            entry = _ENTRIES[vendor](cubins[place].artefact).get(kernel.symbol)
        except cubin.CubinError as error:
            raise ClaimError(str(error)) from error
        if entry is None:
            raise ClaimError(f"the cubin has no kernel '{kernel.symbol}'")
        stores, loads = _spills(entry, cubins[place].log)
        kernels.append(
            KernelFacts(
                name=_label(kernel),
                symbol=entry.symbol,
                registers=entry.registers,
                shared_bytes=entry.shared_bytes,
                stack_bytes=entry.stack_bytes,
                spill_stores=stores,
                spill_loads=loads,
                parameters=entry.parameters,
                cubin=place,
                max_threads=entry.max_threads,
                register_cap=entry.register_cap,
                accumulators=entry.accumulators,
                scalars=entry.scalars,
            )
        )
    return tuple(cubins), tuple(kernels)


def _spills(entry: cubin.CubinKernel, log: str) -> tuple[int, int]:
    """Bytes that a thread stores and loads for want of registers."""
    if entry.spilled is not None:
        return entry.spilled, entry.spilled
    said = _SPILLS.search(log)
    return (int(said[2]), int(said[3])) if said else (0, 0)


def _cubin(left: LeftBehind, digest: str, compiler: str) -> Built:
    raw = left.read(f"{digest}.cubin", CUBIN_BYTES)
    if raw is None or hashlib.sha256(raw).hexdigest() != digest:
        raise ClaimError("a cubin is missing, too large, or another one than was told")
    said = (left.read(f"{digest}.log", LOG_BYTES) or b"").decode(errors="replace")
    listing = (left.read(f"{digest}.s", LISTING_BYTES) or b"").decode(errors="replace")
    log = diagnostics.clean(said)
    return Built(raw, digest, left.seconds, log=log, compiler=compiler, listing=listing)


def _label(kernel: _Kernel) -> str:
    """As a plan would name the specialisation; constants that Triton chose itself included."""
    said = [f"{name}={value}" for name, value in kernel.constants.items()]
    said += [f"num_warps={kernel.warps}", f"num_stages={kernel.stages}"]
    return f"{kernel.name}[{', '.join(said)}]"


def _make_distinct(names: Sequence[str]) -> list[str]:
    """One constant may stand for several cubins, which differ in what Triton knows of divisors."""
    made = []
    for at, name in enumerate(names):
        count = list(names[:at]).count(name)
        made.append(f"{name} #{count + 1}" if count else name)
    return made


def _scratch(claim: _Scratch) -> Scratch:
    if claim.dtype not in DTYPES or any(length < 1 for length in claim.shape):
        raise ClaimError(f"the scratch buffer {claim.name} is {claim.dtype}{claim.shape}")
    return Scratch(claim.name, claim.dtype, tuple(claim.shape))


def _argument(claim: tuple[int, int, int]) -> Argument:
    kind, value, offset = claim
    if kind not in list(ArgumentKind):
        raise ClaimError(f"there is no kind {kind} of arguments")
    return Argument(ArgumentKind(kind), value, offset)


def _check(
    launch: Launch,
    kernels: Sequence[KernelFacts],
    sizes: dict[ArgumentKind, list[int]],
    architecture: Architecture,
) -> None:
    """Holds one launch against what there is. Raises ClaimError."""
    for argument in launch.arguments:
        buffers = sizes.get(argument.kind)
        if buffers is None:
            continue
        is_there = 0 <= argument.value < len(buffers)
        if not is_there or not 0 <= argument.offset <= buffers[argument.value]:
            raise ClaimError("an argument points outside of the buffers")
    if launch.kernel == ZERO_FILL:
        _check_fill(launch, sizes)
        return
    if not 0 <= launch.kernel < len(kernels):
        raise ClaimError(f"there is no kernel {launch.kernel}")
    facts = kernels[launch.kernel]
    for wrong in (limits.grid_wrong(launch.grid), limits.block_wrong(launch.block)):
        if wrong:
            raise ClaimError(f"{facts.name}: {wrong[1]}")
    if cluster := limits.cluster_wrong(launch.cluster, launch.grid, architecture):
        raise ClaimError(f"{facts.name}: {cluster[0]}")
    if built := limits.built_wrong(launch, facts, architecture):
        raise ClaimError(f"{facts.name}: {built[1]}")


def _check_fill(launch: Launch, sizes: dict[ArgumentKind, list[int]]) -> None:
    is_formed = [a.kind in sizes for a in launch.arguments] == [True, False]
    if not is_formed:
        raise ClaimError("a zero fill takes a buffer and a number of bytes")
    buffer, count = launch.arguments
    if not 0 <= count.value <= sizes[buffer.kind][buffer.value] - buffer.offset:
        raise ClaimError("a zero fill reaches past the end of its buffer")


def _renumber(launches: Launches, numbers: Sequence[int], names: Sequence[str]) -> Launches:
    moved = tuple(
        launch if launch.kernel == ZERO_FILL else replace(launch, kernel=numbers[launch.kernel])
        for launch in launches.launches
    )
    return Launches(tuple(names), moved, launches.scratch)
