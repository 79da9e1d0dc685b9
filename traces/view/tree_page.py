# SPDX-License-Identifier: Apache-2.0
"""The tree of a campaign's candidates: who came of whom.

A candidate with several parents stands below the first; the others are told beside it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ..fold import Entry
from ..history import History
from ..why import list_ancestors

MOST_SHOWN = 1500
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

    @property
    def below(self) -> int:
        """How many came of it, of these, and so on."""
        return sum(1 + child.below for child in self.children)


@dataclass(frozen=True)
class TreePage:
    """Everything that the page shows."""

    rows: tuple[Node, ...]
    """In the order of the tree, each behind its parent."""
    left_out: int
    winner: Entry | None


def tree_page(history: History) -> TreePage:
    """The tree, from candidates without a parent on."""
    winner = history.best or history.leader
    way = (
        {each.candidate for each in (*list_ancestors(history, winner), winner)} if winner else set()
    )
    shown = _choose(history, way)
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
    return TreePage(tuple(rows), len(history.entries) - len(rows), winner)


def _choose(history: History, way: set[str]) -> dict[str, Entry]:
    """All, or of too many those on the way, then those that passed with their lines."""
    entries = history.entries
    if len(entries) <= MOST_SHOWN:
        return dict(entries)
    kept = {name: entries[name] for name in entries if name in way}
    for name, entry in entries.items():
        if len(kept) >= MOST_SHOWN:
            break
        if entry.verdict and entry.verdict.status.is_pass:
            kept |= {each.candidate: each for each in list_ancestors(history, entry)}
            kept[name] = entry
    return {name: entry for name, entry in entries.items() if name in kept}
