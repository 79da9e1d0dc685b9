# SPDX-License-Identifier: Apache-2.0
"""`reindex`: what lists and pages are made of, for campaigns of earlier versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import common

if TYPE_CHECKING:
    from ..config import Config
    from ..traces.store import Store
    from .shapes import ReindexDocument


def reindex(
    ctx: typer.Context,
    is_whole: Annotated[
        bool, typer.Option("--all", help="Of all campaigns, also where it seems to be in order.")
    ] = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Make lists and pages of campaigns fast that an earlier version recorded.

    Campaigns that this version writes have all of it already; events are never changed.
    """
    from ..traces.store import Store

    config = common.load(ctx, home=home).config
    # It is to be there: to make one would hide that its path is wrong.
    Store.open(config.home, read_only=True).close()
    prose = common.console(config)
    done = []
    with Store.open(config.home) as store:
        for campaign in store.rebuild_index(store.campaigns() if is_whole else store.stale()):
            done.append(campaign)
            prose.print(campaign, highlight=False)
    if as_json:
        document: ReindexDocument = {"home": str(config.home), "written": done}
        common.emit(document)
    else:
        count = "1 campaign" if len(done) == 1 else f"{len(done)} campaigns"
        common.put(f"{count} indexed; lists and pages read only what they show now")


def hint_stale(store: Store, config: Config) -> None:
    """Says how lists become fast, where some campaigns have no line."""
    if count := len(store.stale()):
        some = "1 campaign was" if count == 1 else f"{count} campaigns were"
        prose = common.console(config)
        prose.print(
            f"hint: {some} recorded by an earlier version; `kernelwright reindex` makes it fast",
            highlight=False,
            soft_wrap=True,
        )
