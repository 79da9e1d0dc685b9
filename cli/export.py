"""`export`: a candidate leaves the house, with its plan, its record and what was not shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import common, names
from .browse import reading

if TYPE_CHECKING:
    from ..traces.history import History
    from ..traces.store import Store

FormOption = Annotated[
    str | None,
    common.option(
        "--format",
        "package (a torch operator; cpp only) or source [default: package for cpp, else source].",
    ),
]
UnverifiedOption = Annotated[
    bool,
    typer.Option(
        "--unverified",
        "--allow-unverified",
        help="Export it whatever its verdict was, marked with it in every file.",
    ),
]


def export(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID[@best]", help="A campaign's champion, or ID/CANDIDATE.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to make.")],
    form: FormOption = None,
    unverified: UnverifiedOption = False,
    home: common.HomeOption = None,
) -> None:
    """Write a verified candidate as a package or as source, with its plan and its evidence."""
    from ..kernelbench.languages import language_of
    from ..traces import export as exporting
    from ..traces.history import derive
    from .export_cases import recorded_cases
    from .plans import launch_plan

    config = common.load(ctx, home=home).config
    with reading(config) as store:
        campaign = store.resolve(names.parse(name).campaign)
        history = derive(store.events(campaign))
        candidate = _chosen(store, history, name, unverified=unverified)
        language = history.entries[candidate].language
        form = form or ("package" if language_of(language).is_native else "source")
        source = store.get_blob(candidate).decode("utf-8", "replace")
        bundle = exporting.bundle_from_store(
            store,
            campaign,
            candidate,
            cases=recorded_cases(history.started.problem) if form == "package" else (),
            plan=launch_plan(history.started, language, source) if form == "source" else None,
        )
    exporting.export(bundle, form, output, unverified=unverified)
    common.put(str(output))


def _chosen(store: Store, history: History, name: str, *, unverified: bool) -> str:
    """The candidate that is named; the champion, or, if asked for, who leads by modelled time."""
    wanted = names.parse(name).candidate or "@best"
    leader = history.leader
    if wanted != "@best" or history.champion is not None or leader is None:
        return store.resolve_candidate(history.campaign, wanted)
    if unverified:
        return leader.candidate
    raise UsageError(
        f"campaign {history.campaign} has no verified winner: its candidates were only emulated "
        f"for {history.started.target}, never timed on a device",
        hint=f"--unverified exports the one that leads by modelled time, #{leader.number}, with "
        "that mark in every file",
    )
