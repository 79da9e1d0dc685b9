# SPDX-License-Identifier: Apache-2.0
"""Fills the record: every candidate on every workload, judged right and timed there.

Candidates take turns with the first of them, the reference, in one timing: the ratio of two that
took turns says far more than two times that were minutes apart. One referee serves the workloads
of a group.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple

from ..agents.model import canonical_json
from ..errors import UsageError
from ..kernelbench.features import features
from ..kernelbench.languages import CPP
from ..kernelbench.packs import KIND
from ..kernelbench.problem import Part, Problem, Workload
from ..traces.records import CHAMPION, Depth, Measurement, Status, Verdict, candidate_id
from ..verifier.request import Order, Referee
from .times import SURE, Seen, is_wrong

AT_ONCE = 8
"""Workloads of a group that one referee holds at most."""
LOOKS = 2
"""How often a candidate is asked whose call was out of time: the machine may have been busy."""


class Contender(NamedTuple):
    """A candidate with a name that people can read."""

    name: str
    source: str
    language: str = CPP.name


class Cell(NamedTuple):
    """A candidate on a workload, by what they are and not by how they are called alone."""

    workload: str
    group: str
    source: str


def cell_of(workload: Workload, contender: Contender) -> Cell:
    """Where in the table a look belongs."""
    return Cell(workload.name, group_of(workload), candidate_id(contender.source))


def pick_looks(
    seen: Iterable[Seen], workloads: Iterable[Workload], contenders: Sequence[Contender]
) -> list[Seen]:
    """Of a record what is of these, whatever they are called now, beside the first of them."""
    names = {candidate_id(each.source): each.name for each in contenders}
    held = {(each.name, group_of(each)) for each in workloads}
    return [
        each.model_copy(update={"candidate": names[each.source]})
        for each in seen
        if each.source in names
        and each.reference == candidate_id(contenders[0].source)
        and (each.workload, each.group) in held
    ]


OpenReferee = Callable[[Workload], AbstractContextManager[Referee]]
"""The referee of a workload, or of several as the parts of one."""


def group_of(workload: Workload) -> str:
    """What workloads of one group share: the pattern; of one without a pattern, its name."""
    if not workload.generator and not workload.matrix:
        return workload.name
    drawn = [workload.generator, workload.matrix_sha256 or workload.matrix, workload.seed]
    digest = hashlib.sha256(canonical_json(drawn).encode()).hexdigest()
    return f"{workload.name.partition(':')[0]} {digest[:12]}"


def group_workloads(workloads: Iterable[Workload]) -> Iterator[tuple[Workload, ...]]:
    """The workloads of each group, at most AT_ONCE together, in the order of their first one."""
    by_group: dict[str, list[Workload]] = {}
    for workload in workloads:
        by_group.setdefault(group_of(workload), []).append(workload)
    for held in by_group.values():
        for first in range(0, len(held), AT_ONCE):
            yield tuple(held[first : first + AT_ONCE])


def join_plain(workloads: Sequence[Workload], name: str) -> Workload:
    """One workload that has these as its parts, all of the same weight."""
    if len(workloads) == 1:
        return workloads[0]
    return Workload(name=name, kind=KIND, parts=tuple(Part(workload=each) for each in workloads))


def measure(
    problem: Problem,
    workloads: Iterable[Workload],
    contenders: Sequence[Contender],
    open_referee: OpenReferee,
    *,
    weights: Mapping[str, float] = MappingProxyType({}),
    is_known: Callable[[Cell], bool] = lambda _: False,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Seen]:
    """Looks at every contender on every workload once; what it sees, as it sees it.

    Args:
        contenders: Of different names; the first is the reference, which has to be right.
        weights: How much a workload counts, by its name; one that is not there counts 1.
        is_known: Whether a cell needs no other look; a candidate whose cells are all so with the
            workloads of a referee is passed over.
        is_over: Asked before each evaluation; once it says yes, nothing more is measured.

    Raises:
        UsageError: the reference is not right somewhere.
        PrerequisiteError: see verifier.request.Referee.
    """
    for held in group_workloads(workloads):
        left = [c for c in contenders if not all(is_known(cell_of(w, c)) for w in held)]
        if not left or is_over():
            continue
        facts = [features(problem.structure(each)) for each in held]
        with open_referee(join_plain(held, "portfolio")) as referee:
            referee.prepare()
            referee.foresee([_order(each, contenders[0]) for each in left])
            for contender in left:
                if is_over():
                    return
                verdict = _look(referee, contender, contenders[0])
                for workload, known in zip(held, facts, strict=True):
                    seen = _note(workload, known, contender, contenders[0], verdict)
                    yield seen.model_copy(update={"weight": weights.get(workload.name, 1.0)})


def _order(contender: Contender, reference: Contender) -> Order:
    rival = reference.source if contender.source != reference.source else ""
    return Order(
        source=contender.source,
        language=contender.language,
        protocol=Depth.SCREEN,
        champion=rival,
    )


def _look(referee: Referee, contender: Contender, reference: Contender) -> Verdict:
    for _ in range(LOOKS):
        verdict = referee.evaluate(_order(contender, reference))
        about = verdict.champion or (verdict if contender == reference else None)
        if about is not None and is_wrong(about.status):
            raise UsageError(
                f"{reference.name}, which all others take turns with, is {about.status}: "
                + "; ".join(about.reasons[:1]),
                hint="name another candidate first",
            )
        if verdict.status is not Status.TIMED_OUT:
            break
    return verdict


def _note(
    workload: Workload,
    facts: dict[str, float],
    contender: Contender,
    reference: Contender,
    verdict: Verdict,
) -> Seen:
    found = _measurement_on(verdict, workload.name)
    ratio = found.speedup.get(CHAMPION) if found else None
    is_reference = contender.source == reference.source
    return Seen(
        workload=workload.name,
        group=group_of(workload),
        facts=facts,
        candidate=contender.name,
        source=candidate_id(contender.source),
        reference=candidate_id(reference.source),
        status=verdict.status,
        reasons=verdict.reasons,
        us=found.candidate.median_us if found else None,
        ratio=(1.0 if found else None) if is_reference else (ratio.median if ratio else None),
        error=math.log(ratio.high / max(ratio.low, 1e-9)) / (2 * SURE) if ratio else None,
    )


def _measurement_on(verdict: Verdict, workload: str) -> Measurement | None:
    return next((each for each in verdict.measurements if each.workload == workload), None)
