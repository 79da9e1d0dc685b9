# SPDX-License-Identifier: Apache-2.0
"""What the commands share: the options that recur, the two streams, and JSON documents.

Data goes to stdout, everything for people to stderr. It knows no problem and no store.
"""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import config as settings
from ..config import Config, Resolved
from ..errors import StorageError, UsageError
from ..kernelbench.languages import list_names
from ..traces.options import Flag, Options
from .completing import complete_language, complete_target

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA_VERSION = 1
"""Of every JSON document that a command prints."""


def option(flag: str, meaning: str, **more: Any) -> Any:
    """An option that is None unless it is given."""
    return typer.Option(flag, help=meaning, show_default=False, **more)


Given = Mapping[str, Any]
"""What the user gave of a group of options, by name; None where nothing."""


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a flag for each member of the groups that it wants what was given of.

    `given` are the options of a campaign, `settings` those of every run (RUN_SETTINGS).
    """
    signature = inspect.signature(command, eval_str=True)
    known = {
        "given": {name: _annotation(flag) for name, flag in Options.flags().items()},
        "settings": RUN_SETTINGS,
    }
    groups = {name: group for name, group in known.items() if name in signature.parameters}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name in groups:
            parameters += [_parameter(*member) for member in groups[parameter.name].items()]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def run(**values: Any) -> None:
        # A flag that may be repeated is an empty list where it is not given.
        given = {
            group: {name: None if (value := values.pop(name)) == [] else value for name in names}
            for group, names in groups.items()
        }
        command(**values, **given)

    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _annotation(flag: Flag) -> Any:
    annotated: Any = Annotated
    return annotated[flag.takes | None, option(flag.name, flag.meaning)]


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


HomeOption = Annotated[Path | None, option("--home", "Folder of the store.")]
CacheOption = Annotated[Path | None, option("--cache-dir", "Folder of the build cache.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
AllOption = Annotated[bool, typer.Option("--all", help="Show every single check.")]
TargetOption = Annotated[
    str | None,
    option(
        "--target",
        "auto, cpu, sm_XX or gfxXXX [default: auto].",
        autocompletion=complete_target,
    ),
]
LanguageOption = Annotated[
    str | None, option("--language", f"{list_names()}.", autocompletion=complete_language)
]
ModelOption = Annotated[
    str | None,
    option(
        "--model", "The Coder's brain: openai/NAME, … [default: recipe, offline].", metavar="NAME"
    ),
]
JudgeModelOption = Annotated[
    str | None,
    option(
        "--judge-model",
        "The Judge's brain: openai/NAME, … [default: rules, offline].",
        metavar="NAME",
    ),
]
SilenceOption = Annotated[
    str | None,
    option(
        "--model-silence", "How long a model may send nothing [default: 20m].", metavar="DURATION"
    ),
]
PatienceOption = Annotated[
    str | None,
    option(
        "--model-patience",
        "How long a call that an endpoint refuses is tried again [default: 10m].",
        metavar="DURATION",
    ),
]
PreparationOption = Annotated[
    str | None,
    option(
        "--max-preparation",
        "How long baselines may take to get ready; one that is not is left out [default: 10m].",
        metavar="DURATION",
    ),
]
TIMING = "NAME@server: cold, with pauses; NAME@offline: warm, back to back; NAME@x2: two at a time."
MatrixOption = Annotated[Path | None, option("--matrix", "Your own .mtx, .mtx.gz or .npz.")]
AxesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--axes",
        help="Sizes in place of the workload's own: M=4096,N=64. Repeatable, with weights and "
        "ranges: M=1..64,N=64:3.",
        metavar="AXIS=SIZE,…",
        show_default=False,
    ),
]
WorkloadsOption = Annotated[
    str | None,
    option("--workloads", "Several: NAME:WEIGHT,…, pack:NAME, or a trace (.jsonl, .csv)."),
]
PolicyOption = Annotated[
    str | None,
    option("--policy", "The problem in another precision: f16, bf16, tf32, …", metavar="NAME"),
]
ProblemsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--problems", help="A folder of your own problems; may be repeated.", show_default=False
    ),
]
JailOption = Annotated[
    str | None, option("--jail", "auto, bubblewrap, landlock or bare [default: auto].")
]
WeakOption = Annotated[
    bool | None,
    typer.Option(
        "--accept-weak-isolation",
        "--i-accept-weak-isolation",
        help="Run kernels although the sandbox lacks a required capability; results say so.",
        show_default=False,
    ),
]
CpusOption = Annotated[str | None, option("--cpus", "CPUs that kernels run on, e.g. 0,2-3.")]

CountersOption = Annotated[
    str | None,
    option(
        "--counters",
        "Hardware counters on a GPU: none, quick, rules, cudaforge, full [default: rules].",
    ),
]

RUN_SETTINGS: dict[str, Any] = {
    "jail": JailOption,
    "cpus": CpusOption,
    "model_silence": SilenceOption,
    "model_patience": PatienceOption,
    "max_preparation": PreparationOption,
    "counters": CountersOption,
    "accept_weak_isolation": WeakOption,
    "home": HomeOption,
    "cache_dir": CacheOption,
}
"""Settings of whatever runs campaigns, by their names in Config."""


@dataclass(frozen=True)
class Globals:
    """The options before the command's name; None where not given."""

    color: str | None = None
    debug: bool | None = None


def load(ctx: typer.Context, **flags: object) -> Resolved:
    """The resolved settings for a command's own flags and the global ones."""
    options = ctx.find_root().obj or Globals()
    return settings.resolve({"color": options.color, "debug": options.debug, **flags})


def home_flag(resolved: Resolved) -> str:
    """`--home …` where a command that goes on with what was kept needs it."""
    if resolved.origins["home"].source is not settings.Source.FLAG:
        return ""
    return f"--home {shlex.quote(str(resolved.config.home))}"


def emit(document: Mapping[str, Any]) -> None:
    """Prints one JSON document on stdout."""
    whole = {"schema_version": SCHEMA_VERSION, **document}
    json.dump(whole, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def check_output(path: Path) -> None:
    """Before long work: raises UsageError where the file could not be written behind it."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else f"lies in {path.parent}, which is no folder"
        raise UsageError(f"the file {path} {what}", hint="name a file in a folder that exists")


def write_text(path: Path, text: str) -> None:
    """Raises StorageError where it cannot be written."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror}",
            hint="name another file; the same command writes it again without new work",
        ) from error


def put(text: str = "") -> None:
    """Prints a line of data on stdout."""
    sys.stdout.write(text + "\n")


def console(config: Config, *, is_stderr: bool = True) -> Console:
    """Rich's console on stderr (prose) or stdout (tables), coloured as the settings say."""
    from rich.console import Console

    stream = sys.stderr if is_stderr else sys.stdout
    return Console(
        file=stream,
        force_terminal=True if config.color == "always" else None,
        no_color=config.color == "never",
        highlight=False,
        # A table in a pipe is read by programs too: never fold it to a guessed width.
        width=None if stream.isatty() else 160,
        soft_wrap=False,
    )
