# SPDX-License-Identifier: Apache-2.0
"""`metrics`: which hardware metrics are collected, and which of them a Judge is fed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import Config
from ..errors import UsageError
from ..traces import names
from . import common

if TYPE_CHECKING:
    from ..verifier.profile.derive import Derived, MeasuredSample
    from ..verifier.profile.fit import Errors, Fitted
    from .shapes import MetricsDeriveDocument, MetricsFitDocument, MetricsShowDocument

app = typer.Typer(
    help="Show and choose the metrics that a Judge is fed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def metrics() -> None:
    """Show which metrics are collected, and choose those that a Judge is fed."""


@app.command("show")
def show(
    ctx: typer.Context,
    target: Annotated[str, typer.Option("--target", help="cpu or sm_XX.")] = "sm_90",
    which: Annotated[str, typer.Option("--set", help="quick, rules, cudaforge or full.")] = "full",
    family: Annotated[
        str, typer.Option("--family", help="A tag of problems, e.g. sparse.")
    ] = "any",
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Print what is collected on a target; a star marks what a Judge is fed."""
    from ..kernelbench.targets import Vendor, target_of
    from ..verifier.profile.metrics import STALLS, catalogue

    chip = target_of(target).gpu
    if chip is not None and chip.vendor is not Vendor.NVIDIA:
        raise UsageError(
            f"no hardware counters are read on {target}: Nsight Compute knows NVIDIA's devices",
            hint="name one of NVIDIA's, such as sm_90; what the code says is in each profile",
        )
    config = common.load(ctx, home=home).config
    found = catalogue(config.home)
    collected = () if target_of(target).is_cpu else found.names(target, which)
    fed = found.judge_metrics(target, [family])
    stalls = found.stalls(target, which)
    if as_json:
        document: MetricsShowDocument = {
            "target": target,
            "family": family,
            "collected": list(collected),
            "judged": list(fed),
        }
        common.emit(document)
        return
    for name in dict.fromkeys([*collected, *(n for n in fed if n != STALLS)]):
        is_fed = name in fed or (name in stalls and STALLS in fed)
        common.put(f"{'*' if is_fed else ' '} {name}")


@app.command("derive")
def derive(
    ctx: typer.Context,
    campaign: Annotated[
        list[str] | None,
        typer.Option(
            "--campaign", help="A campaign; may be repeated [default: all].", show_default=False
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option("--samples", help="A file of JSON lines instead of campaigns."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Only candidates measured on this target.")
    ] = None,
    family: Annotated[
        str, typer.Option("--family", help="Only problems with this tag; any: all of them.")
    ] = "any",
    write: Annotated[
        bool, typer.Option("--write", help="Feed them to the Judge from now on.")
    ] = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Choose metrics by how they go with the time, from candidates that were measured.

    Spread over fastest and slowest candidates, collinearity, and a correlation whose sign holds in
    every task, as CudaForge describes. --write makes them the Judge's for this target and family.
    """
    from ..verifier.profile import metrics_file
    from ..verifier.profile.derive import derive as choose

    if campaign and samples:
        raise UsageError("--campaign and --samples exclude each other", hint="leave one out")
    config = common.load(ctx, home=home).config
    found = _from_file(samples) if samples else _from_store(config, campaign or [])
    chosen_target, kept = _of_one_target(found, target, family)
    result = choose(kept)
    path = None
    if write and not chosen_target:
        raise UsageError("the samples name no target to write for", hint="name one: --target sm_90")
    if write:
        path = metrics_file.write(config.home, chosen_target, family, result.kept, result.tasks)
    if as_json:
        common.emit(_document(result, chosen_target, family, path))
        return
    _print(config, result, chosen_target, family)
    if path:
        common.put(f"written to {path}")


@app.command("fit")
def fit(
    ctx: typer.Context,
    campaign: Annotated[
        list[str] | None,
        typer.Option(
            "--campaign", help="A campaign; may be repeated [default: all].", show_default=False
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option("--samples", help="A file of JSON lines instead of campaigns."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Only candidates measured on this target.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Model times on this target by them from now on.")
    ] = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Fit the model of time to candidates that were measured: a factor for each of its terms.

    What the factors are worth is told on problems that the fit has not seen, each left out in turn;
    --write keeps them only where they are better there.
    """
    from ..verifier.profile import metrics_file
    from ..verifier.profile.fit import fit as solve

    if campaign and samples:
        raise UsageError("--campaign and --samples exclude each other", hint="leave one out")
    config = common.load(ctx, home=home).config
    found = _from_file(samples) if samples else _from_store(config, campaign or [])
    chosen, kept = _of_one_target(found, target, "any")
    result = solve(kept)
    path = None
    if write and not chosen:
        raise UsageError("the samples name no target to write for", hint="name one: --target sm_90")
    if write and result.is_better:
        path = metrics_file.write_scales(config.home, chosen, result.scales, result.candidates)
    if as_json:
        common.emit(_fit_document(result, chosen, path))
        return
    _print_fit(result, chosen)
    if path:
        common.put(f"written to {path}")
    elif write:
        common.put("not written: tasks that were left out are told no better than before")


def _print_fit(result: Fitted, target: str) -> None:
    told = ", ".join(f"{task} ({count})" for task, count in result.candidates.items())
    common.put(f"{target}: {sum(result.candidates.values())} candidates: {told}")
    for name, scale in sorted(result.scales.items()):
        common.put(f"  {name:24} x {scale:.2f}")
    for name, errors in _list_errors(result):
        common.put(
            f"{name}: modelled / measured {errors.bias:.2f} in the median, nine of ten within a "
            f"factor of {errors.nine_of_ten:.2f}"
        )


def _list_errors(result: Fitted) -> tuple[tuple[str, Errors], ...]:
    return (
        ("as it is", result.before),
        ("fitted, on the same candidates", result.after),
        ("fitted, on tasks that were left out", result.held_out),
    )


def _fit_document(result: Fitted, target: str, path: Path | None) -> MetricsFitDocument:
    return {
        "target": target,
        "scales": dict(result.scales),
        "candidates": dict(result.candidates),
        "before": result.before._asdict(),
        "after": result.after._asdict(),
        "held_out": result.held_out._asdict(),
        "is_better": result.is_better,
        "file": str(path) if path else None,
    }


def _from_file(path: Path) -> list[MeasuredSample]:
    from ..verifier.profile.derive import read_samples

    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}", hint="give a file of JSON lines"
        ) from error
    return read_samples(lines, str(path))


def _from_store(config: Config, wanted: list[str]) -> list[MeasuredSample]:
    from ..errors import UnknownNameError
    from ..kernelbench import registry
    from ..traces.history import derive as history_of
    from ..traces.store import Store
    from ..verifier.profile.derive import samples_of

    found: list[MeasuredSample] = []
    with Store.open(config.home, read_only=True) as store:
        for one in [names.find(store, name).campaign for name in wanted] or store.campaigns():
            history = history_of(store.events(one))
            try:
                tags = registry.get(history.started.problem).tags
            except UnknownNameError:
                tags = ()
            found += samples_of(history, tags)
    return found


def _of_one_target(
    samples: list[MeasuredSample], target: str | None, family: str
) -> tuple[str, list[MeasuredSample]]:
    """The samples of the family on one target; times of different devices do not compare."""
    tagged = [one for one in samples if family in ("any", *one.tags)]
    targets = sorted({one.target for one in tagged})
    if target is None and len(targets) > 1:
        raise UsageError(
            f"the candidates were measured on {', '.join(targets)}",
            hint="choose one with --target",
        )
    chosen = target or (targets[0] if targets else "")
    return chosen, [one for one in tagged if one.target == chosen]


def _print(config: Config, result: Derived, target: str, family: str) -> None:
    from rich.table import Table

    tasks = ", ".join(f"{task} ({count})" for task, count in result.tasks.items())
    common.put(f"{target}, {family}: {len(result.kept)} metrics from {tasks}")
    table = Table(box=None, pad_edge=False)
    for title in ("metric", "mean |r|", "r by task", "outcome"):
        table.add_column(title, overflow="fold", justify="left")
    for one in result.ranked:
        by_task = "  ".join(f"{value:+.2f}" for value in one.r.values())
        note = f"{one.fate} {one.note}".strip()
        table.add_row(one.name, f"{one.strength:.2f}" if one.strength else "-", by_task, note)
    common.console(config, is_stderr=False).print(table)
    for task, why in result.left_out.items():
        common.put(f"left out: {task}: {why}")


def _document(
    result: Derived, target: str, family: str, path: Path | None
) -> MetricsDeriveDocument:
    return {
        "target": target,
        "family": family,
        "kept": list(result.kept),
        "metrics": [
            {
                "name": one.name,
                "fate": one.fate.name.lower(),
                "strength": one.strength,
                "r": dict(one.r),
                "note": one.note,
            }
            for one in result.ranked
        ],
        "tasks": dict(result.tasks),
        "left_out": dict(result.left_out),
        "file": str(path) if path else None,
    }
