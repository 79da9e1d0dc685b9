# SPDX-License-Identifier: Apache-2.0
"""The loops of a function by its flow of control: natural loops, of any processor's code.

As in Aho, Lam, Sethi and Ullman, Compilers, section 9.6: an edge back to a block that every way to
its source passes makes a loop, and loops with one head are one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence


def find_loops(successors: Sequence[Sequence[int]]) -> Mapping[int, frozenset[int]]:
    """The blocks of each loop, by its head. Block 0 is where the function begins.

    Args:
        successors: Of each block, where control may go next.
    """
    order = _order(successors)
    before = defaultdict(list)
    for block in order:
        for after in successors[block]:
            before[after].append(block)
    above = _dominators(order, before)
    loops: dict[int, frozenset[int]] = {}
    for block in order:
        for head in successors[block]:
            if _dominates(head, block, above):
                loops[head] = loops.get(head, frozenset()) | _collect(head, block, before)
    return loops


def _order(successors: Sequence[Sequence[int]]) -> list[int]:
    """Reverse postorder of the blocks that can be reached."""
    seen, found = {0}, list[int]()
    stack = [(0, iter(successors[0]))]
    while stack:
        block, left = stack[-1]
        following = next((each for each in left if each not in seen), None)
        if following is None:
            found.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors[following])))
    return found[::-1]


def _dominators(order: Sequence[int], before: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The nearest block that every way to each block passes (Cooper, Harvey and Kennedy 2001)."""
    rank = {block: number for number, block in enumerate(order)}
    above = {order[0]: order[0]}

    def meet(one: int, other: int) -> int:
        while one != other:
            if rank[one] > rank[other]:
                one = above[one]
            else:
                other = above[other]
        return one

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [each for each in before[block] if each in above]
            nearest = known[0]
            for each in known[1:]:
                nearest = meet(nearest, each)
            if above.get(block) != nearest:
                above[block], changed = nearest, True
    return above


def _dominates(head: int, block: int, above: Mapping[int, int]) -> bool:
    while block != head:
        if above[block] == block:
            return False
        block = above[block]
    return True


def _collect(head: int, tail: int, before: Mapping[int, Sequence[int]]) -> frozenset[int]:
    """All that reaches the tail without passing the head."""
    found, left = {head, tail}, [tail] if tail != head else []
    while left:
        for each in before[left.pop()]:
            if each not in found:
                found.add(each)
                left.append(each)
    return frozenset(found)
