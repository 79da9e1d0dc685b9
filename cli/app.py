# SPDX-License-Identifier: Apache-2.0
"""Builds the command line and turns whatever happened into an exit status.

The commands stand beside this file, one file for each family. Nothing heavy is imported before a
command runs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..config import resolve
from ..errors import ConfigError, ExitCode, KernelwrightError
from ..version import VERSION
from . import (
    ab,
    audit,
    bench,
    browse,
    bundle,
    clean,
    configure,
    demo,
    doctor,
    eval,
    export,
    metrics,
    new,
    portfolio,
    problems,
    reindex,
    run,
    schema,
    space,
    suite,
)
from .common import Globals

_SYSTEMS = {"win32": "Windows", "darwin": "macOS"}

app = typer.Typer(
    name="kernelwright",
    help="Generate, verify and optimise GPU and CPU kernels.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", epilog=run.EPILOG)(run.run)
app.command("eval")(eval.evaluate)
app.command("problems")(problems.problems)
app.command("doctor")(doctor.doctor)
app.command("audit")(audit.audit)
app.command("bench")(bench.bench)
app.command("suite")(suite.suite)
app.command("portfolio")(portfolio.portfolio)
app.command("list")(browse.list_campaigns)
app.command("show")(browse.show)
app.command("view")(browse.view)
app.command("report")(browse.report)
app.command("bundle")(bundle.bundle)
app.command("archive")(clean.archive)
app.command("delete")(clean.delete)
app.command("gc")(clean.gc)
app.command("demo")(demo.demo)
app.command("reindex")(reindex.reindex)
app.command("export")(export.export)
app.command("ab")(ab.ab)
app.command("schema")(schema.schema)
app.add_typer(new.app, name="new")
app.add_typer(metrics.app, name="metrics")
app.add_typer(space.app, name="space")
app.add_typer(configure.app, name="config")

# Typer does not export the base of its usage errors; all versions derive this one from it.
_ParserError = cast(type[Exception], typer.BadParameter.__mro__[2])


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kernelwright {VERSION}\n")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    color: Annotated[
        str | None,
        typer.Option("--color", help="auto, always or never [default: auto].", show_default=False),
    ] = None,
    debug: Annotated[
        bool | None,
        typer.Option("--debug", help="Show the traceback of an error.", show_default=False),
    ] = None,
) -> None:
    """Generate, verify and optimise GPU and CPU kernels."""
    assert not version
    ctx.obj = Globals(color=color, debug=debug)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (errors.ExitCode)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.platform != "linux":
        # Jails, the referee's clock and its shared memory are Linux's.
        here = _SYSTEMS.get(sys.platform, sys.platform)
        _complain(
            f"Kernelwright runs kernels in Linux sandboxes, and this is {here}",
            "use WSL 2, a container or a virtual machine with Linux",
        )
        return int(ExitCode.PREREQUISITE)
    try:
        command = typer.main.get_command(app)
        status = command.main(arguments, prog_name="kernelwright", standalone_mode=False)
        sys.stdout.flush()
        return int(status or 0)
    except BrokenPipeError:
        # The reader had enough, as `head` does.
        _abandon_stdout()
        return int(ExitCode.DONE)
    except KernelwrightError as error:
        if _wants_traceback(arguments):
            traceback.print_exc()
        _complain(str(error), error.hint)
        return int(error.exit_code)
    except _ParserError as error:
        return _report_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted", "")
        return int(ExitCode.INTERRUPTED)
    except Exception as error:
        # Of any kind: what nobody foresaw is logged, and ends with a status of its own.
        return _report_internal(error, arguments)


def _complain(message: str, hint: str) -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _abandon_stdout()
    lines = f"error: {message}\n" + (f"\nhint: {hint}\n" if hint else "")
    sys.stderr.write(lines)


def _abandon_stdout() -> None:
    """What cannot be written is not tried again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_usage(error: Any) -> int:
    path = error.ctx.command_path if getattr(error, "ctx", None) else "kernelwright"
    # The error of a command without arguments carries the help text as its message.
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(error.format_message() + "\n")
    else:
        _complain(error.format_message(), f"{path} --help lists what it takes")
    return int(ExitCode.USAGE)


def _wants_traceback(arguments: Sequence[str]) -> bool:
    try:
        return resolve({"debug": True if "--debug" in arguments else None}).config.debug
    except ConfigError:
        return "--debug" in arguments


def _report_internal(error: Exception, arguments: Sequence[str]) -> int:
    text = "".join(traceback.format_exception(error))
    if _wants_traceback(arguments):
        sys.stderr.write(text)
        place = "its traceback is above"
    else:
        place = _write_log(text, arguments)
    _complain(
        f"something inside Kernelwright went wrong ({type(error).__name__}: {error}). What was "
        f"recorded before this is kept; {place}.",
        "run `kernelwright --debug …` to see the traceback here, and report it with that text",
    )
    return int(ExitCode.INTERNAL)


def _write_log(text: str, arguments: Sequence[str]) -> str:
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    words = f"kernelwright {VERSION} {' '.join(arguments[:1])}\n{text}"
    for folder in _log_folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(words, encoding="utf-8")
        except OSError:
            continue
        return f"its traceback is in {folder / name}"
    return "its traceback could not be written to any folder"


def _log_folders() -> list[Path]:
    import tempfile

    folders = [Path(tempfile.gettempdir())]
    with contextlib.suppress(ConfigError):
        folders.insert(0, resolve().config.home / "logs")
    return folders
