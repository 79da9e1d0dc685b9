# SPDX-License-Identifier: Apache-2.0
"""`delete`, `archive` and `gc`: campaigns that nobody needs, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..traces import names
from . import common
from .browse import CampaignArgument
from .completing import complete_campaign

if TYPE_CHECKING:
    from ..config import Config
    from ..traces.store import Store
    from .shapes import ArchiveDocument, DeleteDocument, GcDocument

YesOption = Annotated[
    bool, typer.Option("--yes", help="Do it; without it only told is what would be done.")
]


def delete(
    ctx: typer.Context,
    campaigns: Annotated[
        list[str],
        typer.Argument(
            metavar="ID…",
            help="Campaigns, as `list` names them.",
            autocompletion=complete_campaign,
        ),
    ],
    yes: YesOption = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Take whole campaigns away for good. `gc` then gives the room of their sources back.

    One that runs is refused.
    """
    config = common.load(ctx, home=home).config
    with _writing(config) as store:
        found = list(dict.fromkeys(names.find(store, each).campaign for each in campaigns))
        counts = {campaign: store.count(campaign) for campaign in found}
        for campaign in found if yes else ():
            store.delete(campaign)
    if as_json:
        document: DeleteDocument = {
            "deleted": counts if yes else {},
            "would_delete": {} if yes else counts,
        }
        common.emit(document)
        return
    for campaign, count in counts.items():
        common.put(f"{campaign}  {count} events {'deleted' if yes else 'would be deleted'}")
    _hint(config, "--yes deletes them for good" if not yes else "`kernelwright gc` frees the room")


def archive(
    ctx: typer.Context,
    campaign: CampaignArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The file [default: campaign-ID.zip].", show_default=False
        ),
    ] = None,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Pack a campaign into a file, as `bundle` does, and take it away from the store.

    Nothing is taken away where a source or a prompt did not get into the file.
    """
    from ..traces.bundling import check, pack

    config = common.load(ctx, home=home).config
    with _writing(config) as store:
        found = names.find(store, campaign).campaign
        file = output or Path(f"campaign-{found}.zip")
        if file.exists():
            raise UsageError(
                f"{file} is there already", hint="name another file with -o, or take it away"
            )
        with store.lease(found):
            packed = pack(store, found, file)
        left = packed.kept_back + packed.missing
        if left or check(file) != (found, packed.events):
            file.unlink()
            raise UsageError(
                f"campaign {found} stays: {packed.kept_back} of its sources and prompts hold a key "
                f"or a home folder, and {packed.missing} are missing or changed",
                hint="`kernelwright bundle` packs the others; `kernelwright delete` takes it away",
            )
        store.delete(found)
    if as_json:
        document: ArchiveDocument = {
            "file": str(file),
            "campaign": found,
            "events": packed.events,
        }
        common.emit(document)
        return
    common.put(str(file))
    _hint(config, "`kernelwright view FILE` opens it; `kernelwright gc` frees the room")


def gc(
    ctx: typer.Context,
    yes: YesOption = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Remove sources and prompts that no campaign names, and make the store's file smaller.

    What was written within the last hour stays: a campaign that runs may be about to name it.
    """
    from ..traces.cleaning import find_garbage, remove

    config = common.load(ctx, home=home).config
    with _writing(config) as store:
        garbage = find_garbage(store)
        size = store.path.stat().st_size
        if yes:
            remove(garbage.paths)
            store.vacuum()
        freed = max(0, size - store.path.stat().st_size)
    if as_json:
        document: GcDocument = {
            "files": len(garbage.paths),
            "file_bytes": garbage.bytes,
            "store_bytes": freed,
            "removed": yes,
        }
        common.emit(document)
        return
    verb = "removed" if yes else "would be removed"
    common.put(f"{len(garbage.paths)} files, {_mebibytes(garbage.bytes)} {verb}")
    if yes:
        common.put(f"the store's file is {_mebibytes(freed)} smaller")
    else:
        _hint(config, "--yes removes them")


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB"


def _hint(config: Config, words: str) -> None:
    common.console(config).print(f"hint: {words}", highlight=False, soft_wrap=True)


def _writing(config: Config) -> Store:
    """The store, which is to be there: to make one would hide that its path is wrong."""
    from ..traces.store import Store

    Store.open(config.home, read_only=True).close()
    return Store.open(config.home)
