# SPDX-License-Identifier: Apache-2.0
"""`config`: the settings that hold here, and where each came from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import Resolved, meaning_of, user_file
from . import common

if TYPE_CHECKING:
    from .shapes import ConfigShowDocument, Setting

app = typer.Typer(
    help="Show the settings that hold here.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def config() -> None:
    """Show the settings that hold here, and where each came from."""


@app.command("show")
def show(
    ctx: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Say where each came from.")] = False,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Print every setting with its value."""
    resolved = common.load(ctx, home=home)
    if as_json:
        document: ConfigShowDocument = {"settings": _document(resolved)}
        common.emit(document)
        return
    values = {key: spell_value(value) for key, value in asdict(resolved.config).items()}
    key_width = max(map(len, values))
    value_width = max(map(len, values.values())) if origin else 0
    for key, text in values.items():
        place = f"  {resolved.origins[key]}" if origin else ""
        common.put(f"{key:{key_width}} = {text:{value_width}}{place}".rstrip())


@app.command("path")
def path() -> None:
    """Print the path of the user's configuration file."""
    common.put(str(user_file()))


def spell_value(value: object) -> str:
    """A setting's value as a person reads it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)


def _document(resolved: Resolved) -> dict[str, Setting]:
    document: dict[str, Setting] = {}
    for key, value in asdict(resolved.config).items():
        origin = resolved.origins[key]
        document[key] = {
            "value": str(value) if isinstance(value, Path) else value,
            "source": origin.source.value,
            "place": origin.place,
            "meaning": meaning_of(key),
        }
    return document
