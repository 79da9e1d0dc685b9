# SPDX-License-Identifier: Apache-2.0
"""The machine code of the loops that matter, with the lines of the source that it came of: kept for
people who look at a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...kernelbench.targets import Vendor
from ...traces.records import MOST_INSTRUCTIONS, HotCode, Instruction
from .hot_loop import Timed
from .sass import Listing, SassLoop

MOST_LOOPS = 2


def code_of_loops(loops: Sequence[Timed]) -> tuple[HotCode, ...]:
    """Of the hot loops of a C++ kernel, the hottest first."""
    return tuple(
        _cut(
            f"{'Hot loop' if number == 0 else 'Another loop'} of {timed.loop.function}, "
            f"{timed.cycles:.3g} cycles a pass: bound by {timed.bound}",
            [
                Instruction(text=f"{each.name} {each.operands}".rstrip(), line=each.line)
                for each in timed.loop.body
            ],
        )
        for number, timed in enumerate(loops[:MOST_LOOPS])
    )


def code_of_listing(
    kernel: str, listing: Listing | None, executed: Mapping[int, float]
) -> tuple[HotCode, ...]:
    """Of a GPU's kernel: its deepest loop, of several the longest; all of it where it has none.

    Args:
        executed: warps that execute each instruction, by its address; empty: nobody counted.
    """
    if listing is None or not listing.instructions:
        return ()
    deep = [loop for loop in listing.loops if loop.depth == listing.depth and not loop.is_repeated]
    loop = max(deep, key=lambda each: each.last - each.first, default=None)
    inside = [each for each in listing.instructions if loop is None or each.address in loop]
    kind = "SASS" if inside[0].vendor is Vendor.NVIDIA else "Machine code"
    told = [
        Instruction(
            text=f"{each.opcode} {each.operands}".rstrip(),
            line=each.line,
            warps=executed.get(each.address),
        )
        for each in inside
    ]
    return (_cut(f"{kind} of {kernel}: {_word_loop(loop)}", told),)


def _word_loop(loop: SassLoop | None) -> str:
    if loop is None:
        return "it has no loop"
    within = {1: "", 2: ", within another"}.get(loop.depth, f", within {loop.depth - 1} others")
    return f"its deepest loop{within}"


def _cut(what: str, instructions: Sequence[Instruction]) -> HotCode:
    """The instructions, of too many the first."""
    kept = tuple(instructions[:MOST_INSTRUCTIONS])
    return HotCode(what=what, instructions=kept, left_out=len(instructions) - len(kept))
