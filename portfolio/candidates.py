# SPDX-License-Identifier: Apache-2.0
"""The candidates of a portfolio, as a user names them: files and candidates of campaigns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..errors import UsageError
from ..kernelbench.languages import CPP
from ..traces import names
from ..traces.history import derive
from ..traces.records import Verdict
from ..traces.store import Store
from ..workbench.own_kernel import OwnKernel, read_start
from .measuring import Contender

LEAST = 2
MOST_OF_CAMPAIGN = 8
"""Right candidates that a campaign's id stands for: the fastest ones, by what it measured."""
_OTHER = re.compile(r"[^A-Za-z0-9_.@-]+")


def read_contenders(named: Sequence[str], home: Path) -> list[Contender]:
    """The candidates, each under a name of its own; one that is there twice is taken once.

    Args:
        named: Files, `ID@best`, `ID/NUMBER`, or the `ID` of a campaign for its right ones.
        home: The folder of the store that the campaigns are in.

    Raises:
        UsageError: one cannot be read or is not C++, or there are fewer than two.
        UnknownNameError: there is no such campaign or candidate.
    """
    found: dict[str, Contender] = {}
    for each in named:
        for own in _read(each, home):
            if own.language != CPP.name:
                raise UsageError(
                    f"{own.name} is written in {own.language or 'no known language'}; a dispatcher "
                    f"is made of {CPP.title} only",
                    hint="name candidates in C++",
                )
            found.setdefault(own.text, Contender(own.name, own.text))
    if len(found) < LEAST:
        raise UsageError(
            f"{len(found)} candidate is no portfolio",
            hint="name several files, or a campaign with several right candidates",
        )
    return list(_tell_apart(found.values()))


def _read(name: str, home: Path) -> list[OwnKernel]:
    if Path(name).exists() or Path(name).suffix or names.parse(name).candidate is not None:
        return [read_start(name, home)]
    with Store.open(home, read_only=True) as store:
        campaign = names.find(store, name).campaign
        history = derive(store.events(campaign))
        right = [
            entry
            for entry in history.entries.values()
            if entry.verdict and entry.verdict.status.is_pass and _speed_of(entry.verdict)
        ]
        right.sort(key=lambda entry: -_speed_of(entry.verdict))
        return [
            OwnKernel(
                store.get_blob(entry.candidate).decode(),
                entry.language,
                f"{entry.family}-{entry.number}",
            )
            for entry in right[:MOST_OF_CAMPAIGN]
        ]


def _speed_of(verdict: Verdict | None) -> float:
    timed = verdict.measurement.headline if verdict and verdict.measurement else None
    return timed.median if timed else 0.0


def _tell_apart(contenders: Iterable[Contender]) -> Iterator[Contender]:
    met: set[str] = set()
    for each in contenders:
        plain = _OTHER.sub("-", Path(each.name).stem if Path(each.name).suffix else each.name)
        name, number = plain, 2
        while name in met:
            name, number = f"{plain}-{number}", number + 1
        met.add(name)
        yield each._replace(name=name)
