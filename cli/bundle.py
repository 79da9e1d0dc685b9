# SPDX-License-Identifier: Apache-2.0
"""`bundle`: a campaign as a file for somebody else, who opens it with `view FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..traces import names
from . import common
from .browse import CampaignArgument, reading

if TYPE_CHECKING:
    from .shapes import BundleDocument


def bundle(
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
    """Pack a campaign with its sources and prompts; `kernelwright view FILE` opens it elsewhere.

    Keys and home folders are left out, as in a report.
    """
    from ..traces.bundling import pack

    config = common.load(ctx, home=home).config
    with reading(config) as store:
        found = names.find(store, campaign).campaign
        file = output or Path(f"campaign-{found}.zip")
        packed = pack(store, found, file)
    if as_json:
        document: BundleDocument = {"file": str(file), "campaign": found, **packed._asdict()}
        common.emit(document)
        return
    common.put(str(file))
    prose = common.console(config)
    for count, why in (
        (packed.kept_back, "kept back: it holds a key or a home folder"),
        (packed.missing, "missing in this home"),
    ):
        if count:
            sources = "1 source or prompt" if count == 1 else f"{count} sources or prompts"
            prose.print(f"warning: {sources} {why}", highlight=False)
