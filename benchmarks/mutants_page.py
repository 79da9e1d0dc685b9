"""The page of what became of mutants: shares by operator, problem and check, and who survived."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterator

from machine import machine

from kernelwright.tests.mutation.explained import Because, explain
from kernelwright.tests.mutation.judging import REFUSED, SAME, SURVIVED, TWICE, UNBUILT, Finding
from kernelwright.tests.mutation.operators import OPERATORS

LONGEST = 150
Judged = list[tuple[Finding, Because | None]]
"""Each finding, and of one that survived what is known of it."""


def is_wrong(because: Because | None) -> bool:
    """Whether one that survived counts against the referee."""
    return because is None or because.kind == "missed"


def head_of(title: str, command: str, seed: int) -> list[str]:
    """What was done, and where."""
    return [
        f"# {title}",
        "",
        f"Made by `{command}` on {datetime.date.today()}, seed {seed}. Right kernels "
        "(skeletons, recipes, `tests/honest`) with one mistake each, put before the referee on "
        "the workload `tiny`, CUDA and Triton in emulation: screened, then in full what passed "
        "that, without timing. A mutant that survived and is right on every input, by an argument "
        "that is listed below, counts neither way, nor does one with the machine code of its "
        "original or of another mutant, or one that does not build.",
        "",
        f"Machine: {machine()}.",
        "",
    ]


def page(
    head: list[str], found: list[Finding], planned: dict[str, int]
) -> tuple[str, list[Finding]]:
    """The page, and those that survived unexplained."""
    told = [(f, explain(f) if f.outcome == SURVIVED else None) for f in found]
    unexplained = [f for f, because in told if f.outcome == SURVIVED and because is None]
    lines = [
        *head,
        *_summary(told, planned),
        *_shares("operator", told, lambda f: f.operator, [o.name for o in OPERATORS]),
        *_shares("problem", told, lambda f: f.problem, sorted({f.problem for f in found})),
        *_checks(found),
        *_missed(told),
        *_equal(told),
    ]
    return "\n".join(lines) + "\n", unexplained


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(each) for each in cells) + " |"


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield "|" + "---|" * len(names)


def _code(text: str) -> str:
    """Code that cannot break a table."""
    words = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{words if len(words) <= LONGEST else words[: LONGEST - 1] + '…'}`"


def _summary(told: Judged, planned: dict[str, int]) -> Iterator[str]:
    yield from _head(
        "language",
        "planned",
        "refused",
        "survived",
        "share refused",
        "equal by an argument",
        "same machine code",
        "made twice",
        "not built",
    )
    for language, count in planned.items():
        mine = [(f, because) for f, because in told if f.language == language]
        refused, survived, equal = _count(mine)
        outcomes = Counter(f.outcome for f, _ in mine)
        others = (outcomes[SAME], outcomes[TWICE], outcomes[UNBUILT])
        yield _row(language, count, refused, survived, _share(refused, survived), equal, *others)
    beyond = sum(1 for _, because in told if because and because.is_bounded)
    refused, survived, _ = _count(told)
    yield ""
    yield (
        f"Of those equal by an argument {beyond} differ on tensors of 2³¹ elements and more, on an "
        "axis longer than its problem declares, or where there are more threads than this machine "
        "has, which is not tried. Counted as survivors they "
        f"would make the share refused, of all languages, {_share(refused, survived + beyond)} "
        f"instead of {_share(refused, survived)}."
    )
    yield ""


def _count(told: Judged) -> tuple[int, int, int]:
    """Refused; survived and wrong for all that is known; survived and equal."""
    refused = sum(f.outcome == REFUSED for f, _ in told)
    survived = [because for f, because in told if f.outcome == SURVIVED]
    wrong = sum(map(is_wrong, survived))
    return refused, wrong, len(survived) - wrong


def _share(refused: int, survived: int) -> str:
    return f"{100 * refused / (refused + survived):.1f} %" if refused + survived else ""


def _shares(
    title: str, told: Judged, key: Callable[[Finding], str], names: list[str]
) -> Iterator[str]:
    what = {operator.name: f"{operator.name}: {operator.what}" for operator in OPERATORS}
    yield f"## By {title}"
    yield ""
    yield from _head(title, "refused", "survived", "share refused", "equal by an argument")
    for name in names:
        refused, survived, equal = _count([(f, b) for f, b in told if key(f) == name])
        yield _row(what.get(name, name), refused, survived, _share(refused, survived), equal)
    yield ""


def _gate(finding: Finding) -> str:
    """What caught it: the gate that an answer failed, or how the process ended."""
    named = re.match(r"correct on [^:]*: ([^:]*):", finding.reason)
    if not named and finding.check.startswith("correct on hidden shape"):
        return "correct on a hidden shape"
    return named[1] if named else finding.check


def _checks(found: list[Finding]) -> Iterator[str]:
    """By check, and by the trial that it failed on."""
    refused = [f for f in found if f.outcome == REFUSED]
    yield "## By what caught it"
    yield ""
    yield from _head("check", "screening", "in full")
    both = Counter((_gate(f), f.depth) for f in refused)
    for name, _ in Counter(_gate(f) for f in refused).most_common():
        yield _row(name, both[name, "screen"], both[name, "full"])
    hidden = sum(f.where.startswith("hidden") for f in refused)
    listed = sum(bool(f.where) and not f.where.startswith("hidden") for f in refused)
    yield ""
    yield (
        f"On a hidden shape {hidden}, on a listed workload {listed}, by how the process ended or "
        f"by a look apart {len(refused) - hidden - listed}."
    )
    yield ""


def _missed(told: Judged) -> Iterator[str]:
    yield "## Survived"
    yield ""
    yield from _head("problem", "kernel", "operator", "before", "after", "why it was not seen")
    for f, because in told:
        if f.outcome == SURVIVED and is_wrong(because):
            why = because.why if because else "**unexplained**"
            kernel = f"{f.language}: {f.original}, line {f.line}"
            yield _row(f.problem, kernel, f.operator, _code(f.before), _code(f.after), why)
    yield ""


def _equal(told: Judged) -> Iterator[str]:
    """Each argument, how many it speaks of, and one of them."""
    equal = [(f, because) for f, because in told if because and because.kind == "equal"]
    yield "## Survived, and right"
    yield ""
    yield (
        "The arguments stand in `tests/mutation/explained.toml`. A mutant that one speaks of is "
        "screened, and looked at no further."
    )
    yield ""
    yield from _head("mutants", "argument", "for example")
    for why, number in Counter(because.why for _, because in equal).most_common():
        one = next(f for f, because in equal if because.why == why)
        yield _row(number, why, f"{one.problem}: {_code(one.before)} → {_code(one.after)}")
