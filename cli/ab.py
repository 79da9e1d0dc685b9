# SPDX-License-Identifier: Apache-2.0
"""`ab`: a user's own program with an exported kernel and without it, in turns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ExitCode, UsageError
from . import common

if TYPE_CHECKING:
    from ..compare.programs import Comparison, Package, Program, Ran
    from .shapes import AbDocument

PackageOption = Annotated[
    Path, typer.Option("--package", help="The folder that export made of a C++ winner.")
]
PairsOption = Annotated[
    int, typer.Option("--pairs", min=5, help="How often each side is run, besides once each.")
]
ReadOption = Annotated[
    str | None,
    common.option(
        "--read",
        "A regular expression whose group is a number in what the program prints, in place of the "
        "process's seconds.",
        metavar="REGEX",
    ),
]
RateOption = Annotated[
    bool, typer.Option("--more-is-better", help="What --read finds is a rate, no time.")
]


def ab(
    ctx: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="-- CMD…", help="The program.")],
    package: PackageOption,
    pairs: PairsOption = 10,
    read: ReadOption = None,
    more_is_better: RateOption = False,
    as_json: common.JsonOption = False,
) -> None:
    """Run your own program with an exported kernel and without it: does the program gain?

    Python programs need no change: the kernel takes the library's calls once torch is imported.
    Each run is a fresh process, the sides in turns. Exit status 0 only if the program is faster.
    """
    config = common.load(ctx).config
    from ..compare.programs import Outcome, Program, compare, find_package
    from ..verifier.clock.turns import Turns

    if more_is_better and read is None:
        raise UsageError(
            "--more-is-better says what --read finds, which is not given",
            hint="--read 'REGEX' names the number; seconds of the process are always a time",
        )
    program = Program(tuple(command), _compile(read), more_is_better)
    found = find_package(package)
    prose = common.console(config)

    def tell(number: int, applied: Ran, plain: Ran) -> None:
        prose.print(
            f"pair {number} of {pairs}: {applied.figure:.4g} with, {plain.figure:.4g} without, "
            f"{applied.served} calls served",
            markup=False,
            soft_wrap=True,
        )

    if found.status != "VERIFIED":
        prose.print(f"the kernel in {found.module} is {found.status}, not VERIFIED", markup=False)
    with Turns(config.timing_lock) as turns:
        result = compare(program, found, pairs=pairs, turns=turns, tell=tell)
    if as_json:
        common.emit(_document(result, found, program))
    else:
        for line in tell_result(result):
            common.put(line)
    if result.outcome is not Outcome.FASTER:
        raise typer.Exit(int(ExitCode.NOT_MET))


def _compile(read: str | None) -> re.Pattern[str] | None:
    if read is None:
        return None
    try:
        pattern = re.compile(read)
    except re.error as error:
        raise UsageError(f"--read {read!r} is no regular expression: {error}") from error
    if pattern.groups < 1:
        raise UsageError(
            f"--read {read!r} has no group", hint="put the number in brackets: ([0-9.]+)"
        )
    return pattern


def tell_result(result: Comparison) -> list[str]:
    """The verdict in two or three sentences."""
    from ..compare.programs import Outcome

    gain = result.gain
    interval = f"{gain.median:.3f} times as fast with it (95 % interval {gain.low:.3f} to "
    interval += f"{gain.high:.3f}, {len(result.pairs)} pairs)"
    said = {
        Outcome.FASTER: f"faster: the program is {interval}",
        Outcome.SLOWER: f"slower: the program is {interval}",
        Outcome.SAME: f"no difference that these pairs can show: the program is {interval}",
        Outcome.UNUSED: f"not used: the kernel served no call; the program is {interval}",
    }
    missed = result.missed
    lines = [said[result.outcome]]
    lines.append(f"calls served: {result.served}; left to the library: {sum(missed.values())}")
    lines += [f"  {times} × {reason}" for reason, times in sorted(missed.items())]
    if not result.is_reported:
        lines.append(
            "no process of the program loaded the kernel: it imports no torch, or was started "
            "without site (python -I, -S), or did not end in order"
        )
    return lines


def _document(result: Comparison, package: Package, program: Program) -> AbDocument:
    return {
        "package": package.module,
        "status": package.status,
        "outcome": str(result.outcome),
        "gain": result.gain.model_dump(),
        "figure": program.figure.pattern if program.figure else "seconds of the process",
        "pairs": [{"with": ran.figure, "without": plain.figure} for ran, plain in result.pairs],
        "served": result.served,
        "missed": result.missed,
        "is_reported": result.is_reported,
    }
