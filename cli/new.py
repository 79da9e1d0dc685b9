# SPDX-License-Identifier: Apache-2.0
"""`new`: files to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from . import common

app = typer.Typer(help="Write a file to begin with.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Write a file to begin with."""


@app.command("problem")
def problem(
    name: Annotated[str, typer.Argument(help="What it is called, and its kernels' entry point.")],
    folder: Annotated[
        Path, typer.Option("--folder", help="Where to write it.", show_default="here")
    ] = Path(),
) -> None:
    """Write NAME.py: a problem of your own, with comments, that runs as it is."""
    from ..kernelbench.registry import check_name, template_of

    path = folder / f"{name}.py"
    check_name(name, str(path))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template_of(name))
    except FileExistsError as error:
        raise UsageError(f"{path} is there already", hint="choose another name") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="choose another --folder"
        ) from error
    common.put(f"wrote {path}")
    common.put(f"next: kernelwright problems {path if path.is_absolute() else f'./{path}'}")
