# SPDX-License-Identifier: Apache-2.0
"""How often the instructions of a kernel execute, from what an emulation counted.

The emulation counts accesses to memory by source line, as g++ compiled them; the device's code
has its own loops, unrolled and vectorised otherwise. Both move the same bytes on a line, so the
bytes of a line, over what its instructions move in one pass, say how often those execute; and what
stands in one basic block with them executes as often. Of several versions of a line the most deeply
nested one is taken to do all of the work. Loops without any access to memory get the trips that the
problem's flops need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...kernelbench.targets import WARP
from ...sandbox.run.memory_access import Accesses, LaunchCount
from .classes import OpClass
from .mix import flops_of, kind_of, width_of
from .sass import Instruction, Listing, SassLoop

NEAR = 3
"""Lines by which two compilers may disagree about where an access stands."""
_SECTORS_A_WAVEFRONT = 4.0
_GENERIC = ("LD", "ST")
"""Accesses whose address says which memory they go to."""
_Class = tuple[str, str]
"""Space and operation, as `Accesses` has them."""
_Places = Mapping[tuple[_Class, int], Sequence[tuple[Instruction, SassLoop | None]]]
"""The accesses of the code by class and source line."""


@dataclass(frozen=True)
class Counts:
    """What an emulation counted of a candidate, and where."""

    shape: str
    """The workload's name."""
    launches: tuple[LaunchCount, ...]
    is_subject: bool
    """Whether that is the workload whose time is modelled; else only ratios are taken from it."""
    lack: str = ""
    """Why it is another one."""
    buffer_bytes: Mapping[str, int] = field(default_factory=dict)
    """Of the problem's tensors on that workload."""

    def find_count(self, index: int, kernel: int) -> LaunchCount | None:
        """What is known of the launch with this number, which is of this kernel."""
        if self.is_subject:
            found = self.launches[index] if index < len(self.launches) else None
            return found if found and found.kernel == kernel else None
        return next((one for one in self.launches if one.kernel == kernel), None)


@dataclass(frozen=True)
class Work:
    """What one launch does, over all of its blocks."""

    executed: Mapping[int, float]
    """Warps that execute each instruction, by its address."""
    passes: Mapping[SassLoop, float]
    """Of all warps together."""
    sectors: float
    """32-byte sectors of global memory, by all requests."""
    from_l2: float
    """Those of them that L1 does not answer."""
    beyond_l1: Mapping[int, float]
    """The share of that in the sectors of each load, by its address; where it was counted."""
    near: frozenset[int]
    """Generic accesses that go to shared memory, by their addresses."""
    wavefronts: float
    """Turns of the load/store unit: for shared memory and for what global memory returns."""
    requested: float
    """Bytes that threads ask global memory for."""
    longest: float
    """The warp with the most work over the mean of all warps."""


def work_of(code: Listing, count: LaunchCount, *, warps: int, flops: float) -> Work:
    """What a launch does, from the accesses that were counted on its blocks.

    Args:
        code: Of its kernel.
        warps: In its whole grid.
        flops: That it has to do; only loops without accesses take their trips from it.
    """
    anchors = _anchors(code, count)
    passes, unknown = _passes(code, anchors, float(warps))
    executed = _spread_counts(code, anchors, passes, float(warps))
    if unknown:
        trips = _trips(code, executed, unknown, flops)
        passes = {loop: n * (trips if loop in unknown else 1) for loop, n in passes.items()}
        executed = _spread_counts(code, anchors, passes, float(warps))
    factor = _measure_merging(code, count.accesses)
    shared = sum(a.wavefronts for a in count.accesses if a.space == "shared")
    of_global = [a for a in count.accesses if a.space == "global"]
    sectors = {a: max(a.sectors / factor.get(_key(a), 1.0), a.ideal_sectors) for a in of_global}
    returned = sum(
        max(a.requests / factor.get(_key(a), 1.0), sectors[a] / _SECTORS_A_WAVEFRONT)
        for a in of_global
    )
    return Work(
        executed=executed,
        passes=passes,
        longest=count.longest,
        sectors=count.scale * sum(sectors.values()),
        from_l2=count.scale * sum(min(a.from_l2, sectors[a]) for a in of_global),
        beyond_l1=_beyond_l1(code, of_global),
        near=_list_near(code, count),
        wavefronts=count.scale * (shared + returned),
        requested=count.scale * sum(a.lanes * a.bytes for a in of_global),
    )


def class_of(instruction: Instruction) -> _Class | None:
    """What an access of the device's code is called by an emulation; None: it is no access."""
    kind, name = kind_of(instruction), instruction.opcode
    if kind is OpClass.SHARED:
        return "shared", "write" if name.startswith("ST") else "read"
    if kind is OpClass.ATOMIC:
        return "shared" if name.startswith(("ATOMS", "REDS")) else "global", "atomic"
    if kind is OpClass.ASYNC:
        return ("global", "read") if name.startswith("LDGSTS") else None
    return {
        OpClass.LOAD: ("global", "read"),
        OpClass.STORE: ("global", "write"),
    }.get(kind)


def _key(accesses: Accesses) -> tuple[_Class, int]:
    return (accesses.space, accesses.operation), accesses.line


def _class_at(instruction: Instruction, counted: Collection[tuple[_Class, int]]) -> _Class | None:
    """The same, where an emulation counted accesses: a generic one goes to the memory that it saw
    on its line. Fragments of `wmma` are loaded from shared memory by such."""
    of = class_of(instruction)
    if of is None or instruction.opcode.partition(".")[0] not in _GENERIC:
        return of
    near = "shared", of[1]
    line = instruction.line
    return near if (near, line) in counted and (of, line) not in counted else of


def _by_line(code: Listing, counted: Collection[tuple[_Class, int]]) -> _Places:
    """The accesses of the code, those in the deepest loops of their lines only."""
    found = defaultdict(list)
    for instruction, loop in code.counted:
        if (of := _class_at(instruction, counted)) and instruction.line:
            found[of, instruction.line].append((instruction, loop))
    return {
        key: [(i, loop) for i, loop in each if _depth(loop) == max(_depth(o) for _, o in each)]
        for key, each in found.items()
    }


def _depth(loop: SassLoop | None) -> int:
    return loop.depth if loop else 0


def _anchors(code: Listing, count: LaunchCount) -> dict[int, float]:
    """Warps that execute each access of the code, by address."""
    counted = {_key(each) for each in count.accesses}
    places = _by_line(code, counted)
    copies = {i.line for i, _ in code.counted if kind_of(i) is OpClass.ASYNC}
    moved: dict[tuple[_Class, int], float] = defaultdict(float)
    for each in count.accesses:
        if each.space == "shared" and each.operation == "write" and each.line in copies:
            continue  # half of an asynchronous copy, whose other half is counted
        if (place := _place(places, counted, _key(each))) is not None:
            moved[place] += each.requests * each.bytes * count.scale
    joined = _find_joined(code, places, counted)
    # A line without counts did not run, unless accesses of its kind have none that is known.
    lost = {of for of, line in counted if not line}
    found: dict[int, float] = {}
    for key in places:
        main = joined.get(key, key)
        if main not in moved and key[0] in lost:
            continue
        together = [k for k in places if joined.get(k, k) == main]
        width = sum(width_of(instruction) for k in together for instruction, _ in places[k])
        found.update({i.address: moved[main] / width for i, _ in places[key]})
    # Of shallower versions of a line the work is done already.
    unused = (
        i.address
        for i, _ in code.counted
        if (of := _class_at(i, counted)) and i.line and moved and of not in lost
    )
    return {**dict.fromkeys(unused, 0.0), **found} if moved else {}


def _find_joined(
    code: Listing, places: _Places, counted: Collection[tuple[_Class, int]]
) -> dict[tuple[_Class, int], tuple[_Class, int]]:
    """Lines of one statement that g++ counts as one: the others, and the one that is counted."""
    number = {i.address: n for n, block in enumerate(code.blocks) for i, _ in block}
    blocks = {key: {number[i.address] for i, _ in each} for key, each in places.items()}
    found = {}
    for key in places:
        near = [
            other
            for other in places
            if other in counted
            and other[0] == key[0]
            and abs(other[1] - key[1]) <= NEAR
            and blocks[other] & blocks[key]
        ]
        if key not in counted and near:
            found[key] = min(near, key=lambda other: (abs(other[1] - key[1]), other[1]))
    return found


def _place(
    places: Collection[tuple[_Class, int]],
    counted: Collection[tuple[_Class, int]],
    key: tuple[_Class, int],
) -> tuple[_Class, int] | None:
    """Where the code has the accesses that were counted on this line."""
    if key in places or not key[1]:
        return key if key in places else None
    near = [
        other
        for other in places
        if other[0] == key[0] and abs(other[1] - key[1]) <= NEAR and other not in counted
    ]
    return min(near, key=lambda other: (abs(other[1] - key[1]), other[1]), default=None)


def _measure_merging(
    code: Listing, accesses: Sequence[Accesses]
) -> dict[tuple[_Class, int], float]:
    """By how much the device's accesses are wider than the counted ones, where they are."""
    places = _by_line(code, {_key(each) for each in accesses})
    found = {}
    for each in accesses:
        if (own := places.get(_key(each))) is not None:
            mean = sum(width_of(i) for i, _ in own) / len(own)
            found[_key(each)] = max(1.0, mean / each.bytes)
    return found


def _list_near(code: Listing, count: LaunchCount) -> frozenset[int]:
    counted = {_key(each) for each in count.accesses}
    generic = (i for i, _ in code.counted if _class_at(i, counted) != class_of(i))
    return frozenset(i.address for i in generic)


def _beyond_l1(code: Listing, accesses: Sequence[Accesses]) -> dict[int, float]:
    found: dict[int, float] = {}
    for (of, line), instructions in _by_line(code, {_key(a) for a in accesses}).items():
        own = [a for a in accesses if _key(a) == (of, line)]
        if sectors := sum(a.sectors for a in own):
            share = sum(a.from_l2 for a in own) / sectors
            found.update({i.address: share for i, _ in instructions})
    return found


def _passes(
    code: Listing, anchors: Mapping[int, float], warps: float
) -> tuple[dict[SassLoop, float], set[SassLoop]]:
    """Passes of each loop, and the loops for which nothing says how many they are."""
    own: dict[SassLoop, float] = {}
    for block in code.blocks:
        known = [anchors[i.address] for i, _ in block if i.address in anchors]
        loop = block[0][1]
        if loop is not None and known:
            own[loop] = max(own.get(loop, 0.0), *known)
    passes: dict[SassLoop, float] = {}
    unknown = set()
    for loop in sorted(code.loops, key=lambda one: one.depth):
        around = [other for other in passes if loop.first in other and other.depth < loop.depth]
        outer = passes[max(around, key=lambda one: one.depth)] if around else warps
        inner = [n for other, n in own.items() if other.first in loop and other.depth > loop.depth]
        if loop in own:
            passes[loop] = own[loop]
        elif inner:
            # Somewhere between what is around it and what is inside it.
            passes[loop] = math.sqrt(outer * max(inner))
        else:
            passes[loop] = outer
            unknown.add(loop)
    return passes, unknown


def _spread_counts(
    code: Listing, anchors: Mapping[int, float], passes: Mapping[SassLoop, float], warps: float
) -> dict[int, float]:
    found = {}
    for block in code.blocks:
        loop = block[0][1]
        known = [anchors[i.address] for i, _ in block if i.address in anchors]
        times = max(known) if known else passes[loop] if loop else warps
        # Of an access itself the count says how often it is not masked off.
        found.update({i.address: anchors.get(i.address, times) for i, _ in block})
    return found


def _trips(
    code: Listing, executed: Mapping[int, float], unknown: set[SassLoop], flops: float
) -> float:
    """How often each loop without accesses goes round for all flops to be done."""
    done = {True: 0.0, False: 0.0}
    for instruction, loop in code.counted:
        amount = flops_of(instruction) * WARP * executed[instruction.address]
        done[loop in unknown] += amount
    return max(1.0, (flops - done[False]) / done[True]) if done[True] else 1.0
