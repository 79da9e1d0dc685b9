# SPDX-License-Identifier: Apache-2.0
"""`audit`: verify stored champions again. Opens store and referee, prints, decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import Config
from ..errors import ExitCode, UsageError
from ..traces import names
from . import common
from .completing import complete_campaign

if TYPE_CHECKING:
    from rich.console import Console

    from ..audit import OpenReferee
    from ..traces.events import CampaignAudited
    from ..traces.sheet import Sheet
    from ..traces.store import Store
    from .shapes import AuditDocument, AuditShape, Skipped

EVERY = "all"
"""In place of a campaign: every one that has a champion."""


@dataclass
class _Rows:
    """What was found, and what was not looked at."""

    audited: list[AuditShape] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def audit(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN|all",
            help="A campaign, @last, or all of them.",
            autocompletion=complete_campaign,
        ),
    ],
    jail: common.JailOption = None,
    cpus: common.CpusOption = None,
    max_preparation: common.PreparationOption = None,
    accept_weak_isolation: common.WeakOption = None,
    home: common.HomeOption = None,
    cache_dir: common.CacheOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Verify stored champions again: on this machine, with new seeds, in fresh processes.

    Says for each whether it holds, is slower or no longer holds, what its record lacks, and what
    is other than it was; the campaign keeps what was found. Exit status 0 if all hold, else 1.
    """
    config = common.load(
        ctx,
        jail=jail,
        cpus=cpus,
        accept_weak_isolation=accept_weak_isolation,
        home=home,
        cache_dir=cache_dir,
        max_preparation=max_preparation,
    ).config
    from ..workbench import tasks

    tasks.check_cpus(config.cpus)
    from ..traces.events import AuditOutcome
    from ..traces.store import Store

    # Opening for writing would make a store where there is none.
    Store.open(config.home, read_only=True).close()
    prose = common.console(config)
    rows = _Rows()
    holds = True
    with Store.open(config.home) as store:
        for campaign in _choose_campaigns(store, name, rows, prose):
            found = _carry_out(campaign, store, config, prose)
            holds = holds and found.outcome is AuditOutcome.HOLDS
            with store.sheet(campaign) as sheet:
                rows.audited.append(_document(sheet, found))
                if not as_json:
                    _print(sheet, found)
    if as_json:
        document: AuditDocument = {
            "ok": holds,
            "audits": rows.audited,
            "skipped": rows.skipped,
        }
        common.emit(document)
    if not holds:
        raise typer.Exit(int(ExitCode.NOT_MET))


def _choose_campaigns(store: Store, name: str, rows: _Rows, prose: Console) -> Iterator[str]:
    """The campaigns to look at. One that is named must be fit for it; of all, the fit ones."""
    if name != EVERY:
        found = names.find(store, name)
        with store.sheet(found.campaign) as sheet:
            champion = sheet.head.champion
        if found.candidate is not None and found.candidate != champion:
            raise UsageError(
                f"'{name}' is not the champion of its campaign",
                hint=f"kernelwright audit {found.campaign} looks at the champion",
            )
        yield found.campaign
        return
    fit = 0
    for campaign in store.campaigns():
        why = ""
        with store.sheet(campaign) as sheet:
            champion = sheet.head.champion
        if champion is None:
            why = "it has no verified winner"
        elif store.is_running(campaign):
            why = "another process works on it"
        if why:
            rows.skipped.append({"campaign": campaign, "why": why})
            prose.print(f"{campaign} is left out: {why}", markup=False, soft_wrap=True)
            continue
        fit += 1
        yield campaign
    if not fit:
        raise UsageError(
            f"no campaign in {store.home} has a champion to look at again",
            hint="`kernelwright list` shows what there is",
        )


def _carry_out(campaign: str, store: Store, config: Config, prose: Console) -> CampaignAudited:
    from ..audit import audit_campaign

    prose.print(f"verifying the champion of {campaign} again …", markup=False)
    return audit_campaign(campaign, store, _bench(config, prose))


def _bench(config: Config, prose: Console) -> OpenReferee:
    from contextlib import contextmanager

    from ..kernelbench.problem import Workload
    from ..verifier.process.client import open_referee
    from ..verifier.request import Referee
    from ..workbench import tasks
    from . import planning

    @contextmanager
    def open_one(problem: str, workload: Workload, target: str) -> Iterator[Referee]:
        with open_referee(tasks.task_for(config, problem, workload, target)) as referee:
            planning.warn_of_weakness(prose, referee.isolation)
            yield referee

    return open_one


def _print(sheet: Sheet, found: CampaignAudited) -> None:
    from ..traces.audits import audit_sentence

    started = sheet.head.started
    common.put(f"{sheet.campaign}  {started.problem} / {started.workload} on {started.target}")
    common.put(f"  {audit_sentence(sheet.entries, found)}")
    for lack in found.lacking:
        common.put(f"  its record lacks: {lack}")
    for each in found.differences:
        common.put(f"  {each.name}: {each.then} then, {each.now} now")


def _document(sheet: Sheet, found: CampaignAudited) -> AuditShape:
    started = sheet.head.started
    return {
        "campaign": sheet.campaign,
        "problem": started.problem,
        "workload": started.workload,
        "target": started.target,
        "number": sheet.entries[found.candidate].number,
        **found.model_dump(mode="json", exclude={"kind"}),
    }
