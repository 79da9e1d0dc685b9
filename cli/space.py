# SPDX-License-Identifier: Apache-2.0
"""`space`: replays, compares and records searches of kernels' knobs."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import common

if TYPE_CHECKING:
    from ..agents.search.replay import Played
    from ..kernelbench.recorded import RecordedSpace
    from ..traces.history import History
    from .shapes import PlayedStrategy, SpaceCompareDocument, SpaceReplayDocument

app = typer.Typer(
    help="Replay, compare and record searches of kernels' knobs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 400)
"""Evaluations after which the best so far is printed."""
WITHIN = (10.0, 5.0, 2.0, 1.0)
"""Percent of the optimum."""
StrategyOption = Annotated[
    str,
    typer.Option(
        "--strategy", help="model, genetic, random, exhaustive, or one as kernel_tuner:NAME."
    ),
]
MostOption = Annotated[int, typer.Option("--most", min=1, help="Evaluations of one play at most.")]


@app.callback()
def space() -> None:
    """Replay, compare and record searches of kernels' knobs."""


@app.command("replay")
def replay(
    file: Annotated[Path, typer.Argument(help="A cache file of Kernel Tuner, or a T4 file.")],
    strategy: StrategyOption = "model",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the strategy.")] = 0,
    most: MostOption = 400,
    as_json: common.JsonOption = False,
) -> None:
    """Play one search on a recorded space: the best so far after how many evaluations."""
    from ..kernelbench.recorded import read_space

    recorded = read_space(file)
    played = _play(recorded, strategy, seed, most)
    best = recorded.best_us
    reached = {f"{within:g} %": played.count_until(best * (1 + within / 100)) for within in WITHIN}
    if as_json:
        document: SpaceReplayDocument = {
            "kernel": recorded.name,
            "device": recorded.device,
            "points": len(recorded.space),
            "best_us": best,
            "strategy": strategy,
            "seed": seed,
            "asked": [recorded.space.at(point) for point in played.asked],
            "best_so_far_us": [t if math.isfinite(t) else None for t in played.best_us],
            "evaluations_within": reached,
        }
        common.emit(document)
        return
    common.put(_headline(recorded))
    for count in SHOWN:
        if count <= len(played.best_us):
            time = played.best_us[count - 1]
            behind = f"{time / best:.3f} of the optimum" if math.isfinite(time) else "none is right"
            common.put(f"after {count:4d} evaluations: {time:10.1f} µs, {behind}")
    for within, after in reached.items():
        common.put(f"within {within}: {f'after {after}' if after else 'not reached'}")


@app.command("compare")
def compare(
    files: Annotated[list[Path], typer.Argument(help="Recorded spaces.")],
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help="May be repeated [default: model, genetic, random].",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Plays of each.")] = 20,
    within: Annotated[
        float, typer.Option("--within", min=0.0, help="Percent of the optimum to come to.")
    ] = 1.0,
    most: MostOption = 400,
    as_json: common.JsonOption = False,
) -> None:
    """Play searches side by side: evaluations until one comes close, in the median over seeds.

    A play that does not counts as --most. The last column is the geometric mean over the files.
    """
    from ..kernelbench.recorded import read_space

    spaces = {file: read_space(file) for file in files}
    rows: list[PlayedStrategy] = []
    for strategy in strategies or ["model", "genetic", "random"]:
        counts = {
            str(file): [
                _play(recorded, strategy, seed, most, within).count_until(
                    recorded.best_us * (1 + within / 100)
                )
                or most
                for seed in range(seeds)
            ]
            for file, recorded in spaces.items()
        }
        medians = {file: statistics.median(found) for file, found in counts.items()}
        mean = statistics.geometric_mean(medians.values())
        rows.append({"strategy": strategy, "median": medians, "geometric_mean": mean})
    if as_json:
        document: SpaceCompareDocument = {
            "within": within,
            "seeds": seeds,
            "most": most,
            "rows": rows,
        }
        common.emit(document)
        return
    for recorded in spaces.values():
        common.put(_headline(recorded))
    width = max(len(row["strategy"]) for row in rows)
    for row in rows:
        shown = "  ".join(f"{median:6.1f}" for median in row["median"].values())
        common.put(f"{row['strategy']:{width}}  {shown}  {row['geometric_mean']:6.1f}")


@app.command("record")
def record(
    ctx: typer.Context,
    campaign: Annotated[str, typer.Argument(help="Of which candidates were made by knobs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file; .gz compresses it.")],
    form: Annotated[str, typer.Option("--form", help="cache (Kernel Tuner) or t4.")] = "cache",
    home: common.HomeOption = None,
) -> None:
    """Write the candidates of a campaign that have knobs as a recorded space."""
    from ..kernelbench.recorded import write_space
    from ..traces import names
    from ..traces.history import derive as history_of
    from ..traces.store import Store

    config = common.load(ctx, home=home).config
    with Store.open(config.home, read_only=True) as store:
        history = history_of(store.events(names.find(store, campaign).campaign))
    recorded = _make_recorded(history)
    write_space(recorded, output, form)
    common.put(f"{len(recorded.space)} points written to {output}")


def _headline(recorded: RecordedSpace) -> str:
    failed = sum(time is None for time in recorded.times_us)
    return (
        f"{recorded.name} on {recorded.device}: {len(recorded.space)} points, {failed} failed, "
        f"best {recorded.best_us:.1f} µs"
    )


def _play(
    recorded: RecordedSpace, strategy: str, seed: int, most: int, within: float = -100.0
) -> Played:
    from ..agents.search.replay import play
    from ..agents.search.strategy import make_strategy

    return play(
        recorded,
        make_strategy(strategy, recorded.space, seed),
        most,
        recorded.best_us * (1 + within / 100),
    )


def _make_recorded(history: History) -> RecordedSpace:
    from ..kernelbench.recipe import Knob, KnobValue
    from ..kernelbench.recorded import COMPILE, RUNTIME, WRONG, RecordedSpace
    from ..kernelbench.space import FAMILY, space_of_points
    from ..traces.records import Status

    words = {Status.BUILD_FAILED: COMPILE, Status.UNSUPPORTED: COMPILE, Status.INCORRECT: WRONG}
    points: list[dict[str, KnobValue]] = []
    times: list[float | None] = []
    failures: list[str] = []
    for entry in history.entries.values():
        if not entry.knobs or (verdict := entry.verdict) is None:
            continue
        knobs = {k: v for k, v in entry.knobs.items() if isinstance(v, int | float | str)}
        measured = verdict.measurement if verdict.status.is_pass else None
        time = measured.candidate.median_us if measured else verdict.modelled_us
        points.append({FAMILY: entry.family, **knobs})
        times.append(time)
        failures.append("" if time else words.get(verdict.status, RUNTIME))
    if not any(times):
        raise UsageError(
            f"the campaign {history.campaign} has no candidate with knobs and a time",
            hint="candidates of the workflow tune have knobs",
        )
    values: dict[str, set[KnobValue]] = {}
    for point in points:
        for name, value in point.items():
            values.setdefault(name, set()).add(value)
    knobs_of = [
        Knob(name, tuple(sorted(found, key=lambda v: (isinstance(v, str), v))), "as recorded")
        for name, found in values.items()
    ]
    started = history.started
    return RecordedSpace(
        started.problem,
        started.target,
        space_of_points(knobs_of, points),
        tuple(times),
        tuple(failures),
    )
