# SPDX-License-Identifier: Apache-2.0
"""`demo`: a recorded campaign to look at, where there is neither a key nor a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from . import common

if TYPE_CHECKING:
    from .shapes import DemoDocument

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "models.zip"
"""A campaign of Coder and Judge, as `bundle` packed it."""


def demo(
    ctx: typer.Context,
    models: Annotated[
        bool,
        typer.Option("--models", help="A recorded campaign of Coder and Judge, with prompts."),
    ] = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Put a recorded campaign into the home, to look at in `view`, `show` and `report`.

    It asks nobody and runs nothing: its times are those of the machine that it was recorded on.
    """
    from ..traces.bundling import check, unpack
    from ..traces.store import Store

    if not models:
        raise UsageError(
            "demo shows a recorded campaign, and was not told which",
            hint="kernelwright demo --models; or make one here: "
            "kernelwright run spmm_csr --max-time 90s",
        )
    resolved = common.load(ctx, home=home)
    campaign, events = check(RECORDED)
    with Store.open(resolved.config.home) as store:
        is_there = campaign in store.campaigns()
    if not is_there:
        unpack(RECORDED, resolved.config.home)
    if as_json:
        document: DemoDocument = {
            "campaign": campaign,
            "events": events,
            "was_there": is_there,
        }
        common.emit(document)
        return
    common.put(campaign)
    named = common.home_flag(resolved)
    flag = f" {named}" if named else ""
    prose = common.console(resolved.config)
    told = "is in the home already" if is_there else f"recorded elsewhere, {events} events"
    for line in (
        f"{told}; nothing was asked or run here",
        f"look    kernelwright view {campaign}{flag}",
        f"or      kernelwright show {campaign} --calls{flag}",
    ):
        prose.print(line, markup=False, highlight=False, soft_wrap=True)
