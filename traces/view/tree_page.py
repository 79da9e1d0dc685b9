# SPDX-License-Identifier: Apache-2.0
"""The tree of a campaign's candidates: who came of whom.

A candidate with several parents stands below the first; the others are told beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..fold import Entry
from ..sheet import Branch, Sheet
from ..why import list_ancestors

MOST_SHOWN = 800
"""Candidates of a tree; of a larger one, lines without a pass are left out first."""


@dataclass
class Node:
    """A candidate and those that came of it."""

    entry: Entry
    depth: int
    is_on_the_way: bool
    """Whether the winner came of it."""
    children: list[Node] = field(default_factory=list)
    others: tuple[Entry, ...] = ()
    """Its further parents."""
    below: int = 0
    """How many came of it, of these, and so on."""


@dataclass(frozen=True)
class TreePage:
    """Everything that the page shows."""

    rows: tuple[Node, ...]
    """In the order of the tree, each behind its parent."""
    left_out: int
    winner: Entry | None


def tree_page(sheet: Sheet) -> TreePage:
    """The tree, from candidates without a parent on."""
    winner = sheet.head.winner
    line = [*list_ancestors(sheet.entries, winner), winner] if winner else []
    way = {each.candidate for each in line}
    shown = sheet.entries.find(_choose(sheet.list_branches(), way))
    children: defaultdict[str, list[Entry]] = defaultdict(list)
    roots: list[Entry] = []
    for entry in shown.values():
        parent = entry.parents[0] if entry.parents else ""
        (children[parent] if parent in shown and parent != entry.candidate else roots).append(entry)
    rows: list[Node] = []
    seen: set[str] = set()
    # By hand: a line may be longer than calls can be deep.
    waiting: list[tuple[Entry, int, Node | None]] = [(entry, 0, None) for entry in reversed(roots)]
    while waiting:
        entry, depth, above = waiting.pop()
        if entry.candidate in seen:
            continue
        seen.add(entry.candidate)
        others = tuple(shown[name] for name in entry.parents[1:] if name in shown)
        node = Node(entry, depth, entry.candidate in way, others=others)
        if above:
            above.children.append(node)
        rows.append(node)
        waiting += [(child, depth + 1, node) for child in reversed(children[entry.candidate])]
    for node in reversed(rows):
        node.below = sum(1 + child.below for child in node.children)
    return TreePage(tuple(rows), sheet.head.proposed - len(rows), winner)


def _choose(branches: Sequence[Branch], way: set[str]) -> list[str]:
    """All, or of too many those on the way, then those that passed with their lines."""
    if len(branches) <= MOST_SHOWN:
        return [branch.candidate for branch in branches]
    parent_of = {branch.candidate: branch.parents[:1] for branch in branches}
    kept = {name for name in parent_of if name in way}
    for branch in branches:
        if len(kept) >= MOST_SHOWN:
            break
        if branch.is_pass:
            line: tuple[str, ...] = (branch.candidate,)
            while line and line[0] in parent_of and line[0] not in kept:
                kept.add(line[0])
                line = parent_of[line[0]]
    return [branch.candidate for branch in branches if branch.candidate in kept]
