# SPDX-License-Identifier: Apache-2.0
"""The settings of one run and where each came from; every environment variable is read here.

Precedence: flags, then the environment (`KERNELWRIGHT_*`), then the project's file
(`kernelwright.toml`, else `[tool.kernelwright]` of `pyproject.toml`, in the working folder), then
the user's file, then the defaults. Layers are sparse; all else sees only the resolved Config.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import platformdirs

from .errors import ConfigError

PREFIX = "KERNELWRIGHT_"
DEFAULT_MAX_TIME_S = 60.0
"""The wall time of a campaign that was given no limit: long enough for a first answer."""

OPENAI_URL = "https://api.openai.com/v1"
"""Where a model is asked unless the user names another endpoint."""

DEFAULT_SILENCE_S = 1200.0
"""A reasoning model may think for a quarter of an hour; giving it up books all it may cost."""

DEFAULT_PATIENCE_S = 600.0
"""A refused call costs nothing: an endpoint that is overloaded or restarted is back by then."""

DEFAULT_TIMING_LOCK = "/tmp"
"""All users of a machine have it, and whoever may open it may lock it."""

DEFAULT_PREPARATION_S = 600.0
"""torch.compile takes half a minute on a busy machine, and longer the more it has to fuse."""

MOST_CPUS = 1 << 16
"""More than any machine has; a longer range is a slip, and would fill the memory."""

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


class Source(StrEnum):
    """The layer that a value came from, strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    PROJECT = "project file"
    USER = "user file"
    DEFAULT = "default"


@dataclass(frozen=True)
class Origin:
    """Where a value came from."""

    source: Source
    place: str = ""
    """The flag, the variable, or the file with its line."""

    def __str__(self) -> str:
        return f"{self.source} {self.place}".rstrip()


def parse_duration(value: object) -> float:
    """Seconds of `90s`, `2m`, `1h30m` or a plain number of seconds; more than zero."""
    text = str(value).strip().lower()
    seconds = None
    if not isinstance(value, bool) and re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    elif text and (match := _DURATION.fullmatch(text)):
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    if seconds is None or not 0 < seconds < math.inf:
        raise ValueError("is not a duration such as 90s, 2m or 1h30m")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest spelling that `parse_duration` reads back, to the second above ten seconds."""
    if seconds < 10:
        return f"{seconds:.2f}".rstrip("0").rstrip(".") + "s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


def _as_path(value: object, base: Path) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ValueError("is not a path")
    if "\0" in str(value):
        raise ValueError("holds a zero byte, as no path does")
    try:
        return (base / Path(value).expanduser()).absolute()
    except RuntimeError as error:
        raise ValueError("names the home folder of a user who is not known") from error


def _as_text(value: object, _: Path) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is not a non-empty text")
    return value


def _as_bool(value: object, _: Path) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise ValueError("is neither true nor false")


def _as_count(value: object, _: Path) -> int:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,18}", text) or int(text) < 1:
        raise ValueError("is not a whole number of at least 1")
    return int(text)


def _as_duration(value: object, _: Path) -> float:
    return parse_duration(value)


def _as_url(value: object, _: Path) -> str:
    text = str(value).rstrip("/")
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_usable = is_usable and (parts.port is None or parts.port > 0)
    except ValueError:
        is_usable = False
    if not isinstance(value, str) or not is_usable or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError("is not a base URL such as http://localhost:8000/v1")
    if "@" in parts.netloc:
        raise ValueError("holds a name or a password; keys stand in the key file")
    if parts.query or parts.fragment:
        raise ValueError("holds more than a host and a path")
    return text


def _as_cpus(value: object, _: Path) -> tuple[int, ...]:
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    cpus: set[int] = set()
    for part in parts:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", str(part).strip())
        if not match or isinstance(part, bool):
            raise ValueError("is not a list of CPUs such as 0,2-3")
        if max(len(match[1]), len(match[2] or "")) > 9:
            raise ValueError(f"holds {str(part)[:40]}, and no CPU has such a number")
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= MOST_CPUS:
            raise ValueError(f"holds CPU {last}; numbers go up to {MOST_CPUS - 1}")
        if last < first:
            raise ValueError(f"holds the range {part}, which runs backwards")
        cpus.update(range(first, last + 1))
    return tuple(sorted(cpus))


def _as_folders(value: object, base: Path) -> tuple[Path, ...]:
    folders = value if isinstance(value, list | tuple) else str(value).split(os.pathsep)
    return tuple(_as_path(folder, base) for folder in folders)


def _as_devices(value: object, _: Path) -> tuple[str, ...]:
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    words = tuple(str(part).strip() for part in parts)
    for word in filter(None, words):
        if not re.fullmatch(r"\d{1,4}|-1|none|NoDevFiles|(?:GPU|MIG)-[\w./-]+", word):
            raise ValueError("is not a list of GPUs such as 0,2 or GPU-8932f937")
    return tuple(filter(None, words))


def _one_of(*choices: str) -> Callable[[object, Path], str]:
    def parse(value: object, _: Path) -> str:
        if value not in choices:
            raise ValueError(f"is none of {', '.join(choices)}")
        return str(value)

    return parse


def _setting(
    parse: Callable[[object, Path], Any],
    meaning: str,
    default: Any = None,
    *,
    is_project_safe: bool = True,
) -> Any:
    metadata = {"parse": parse, "meaning": meaning, "is_project_safe": is_project_safe}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """Every setting, resolved. A field's name is its key in files; in capitals, its variable."""

    home: Path = _setting(
        _as_path, "folder of the store", lambda: platformdirs.user_data_path("kernelwright")
    )
    cache_dir: Path = _setting(
        _as_path,
        "folder of built artefacts and measured peaks",
        lambda: platformdirs.user_cache_path("kernelwright"),
    )
    jail: str = _setting(
        _one_of("auto", "bubblewrap", "landlock", "bare"), "isolation mechanism", "auto"
    )
    # A folder that somebody checked out must not be able to lower its reader's guard.
    accept_weak_isolation: bool = _setting(
        _as_bool,
        "run kernels although the sandbox lacks a required capability",
        False,
        is_project_safe=False,
    )
    cpus: tuple[int, ...] = _setting(_as_cpus, "CPUs that kernels run on; none: all allowed", ())
    problems: tuple[Path, ...] = _setting(_as_folders, "folders of your own problems", ())
    # Who times beside others credits too much.
    timing_lock: Path = _setting(
        _as_path,
        "what all users may read and timings on this machine's CPUs take turns at",
        Path(DEFAULT_TIMING_LOCK),
        is_project_safe=False,
    )
    devices: tuple[str, ...] | None = _setting(
        _as_devices, "GPUs that may be used: numbers or UUIDs as nvidia-smi shows them; none: all"
    )
    # What lies in it is run outside of the sandbox, too: ncu and compute-sanitizer.
    cuda_home: Path | None = _setting(
        _as_path,
        "folder of the CUDA toolkit to use before the wheels",
        is_project_safe=False,
    )
    cuda_compiler: Literal["nvrtc", "nvcc"] = _setting(
        _one_of("nvrtc", "nvcc"), "compiler of CUDA C++; nvcc needs a toolkit", "nvrtc"
    )
    target: str = _setting(_as_text, "where kernels run: auto, cpu, sm_XX or gfxXXX", "auto")
    workflow: str | None = _setting(
        _as_text, "the campaign's workflow; none: tune for recipes, evolve for a model"
    )
    model: str = _setting(_as_text, "the Coder's brain", "recipe")
    judge_model: str = _setting(_as_text, "the Judge's brain", "rules")
    # Whoever names the endpoint gets the user's key, and whoever names the prices moves the cap.
    base_url: str = _setting(
        _as_url,
        "base URL of the OpenAI-compatible endpoint that models are asked at",
        OPENAI_URL,
        is_project_safe=False,
    )
    key_file: Path | None = _setting(
        _as_path,
        "file of API keys by base URL; none: keys.toml beside the user's settings",
        is_project_safe=False,
    )
    prices_file: Path | None = _setting(
        _as_path,
        "file of your own prices; none: prices.toml beside the user's settings",
        is_project_safe=False,
    )
    capabilities_file: Path | None = _setting(
        _as_path,
        "file of what endpoints take; none: capabilities.toml beside the user's settings",
        is_project_safe=False,
    )
    model_silence: float = _setting(
        _as_duration,
        "seconds that a model may stay silent before a call is given up",
        DEFAULT_SILENCE_S,
    )
    model_patience: float = _setting(
        _as_duration,
        "seconds that a call which an endpoint refuses is tried again",
        DEFAULT_PATIENCE_S,
    )
    model_slots: int | None = _setting(
        _as_count, "calls in flight at one endpoint; none: 4, and 1 on this machine", None
    )
    max_evals: int | None = _setting(_as_count, "evaluations that a campaign may spend", None)
    max_time: float | None = _setting(
        _as_duration, "wall time that a campaign may spend, in seconds", None
    )
    max_preparation: float = _setting(
        _as_duration,
        "seconds that baselines may take to get ready; one that is not is left out",
        DEFAULT_PREPARATION_S,
    )
    counters: str = _setting(
        _one_of("none", "quick", "rules", "cudaforge", "full"), "counters to read on GPUs", "rules"
    )
    color: str = _setting(_one_of("auto", "always", "never"), "colour on stderr", "auto")
    debug: bool = _setting(_as_bool, "show tracebacks", False)


@dataclass(frozen=True)
class Resolved:
    """A Config with the origin of each of its values."""

    config: Config
    origins: Mapping[str, Origin]


@dataclass(frozen=True)
class _Entry:
    key: str
    value: object
    origin: Origin
    base: Path


_SETTINGS = {setting.name: setting for setting in fields(Config)}


def meaning_of(key: str) -> str:
    """What the setting `key` decides, in a few words."""
    return cast(str, _SETTINGS[key].metadata["meaning"])


def user_file() -> Path:
    """The user's own configuration file, whether or not it exists."""
    return platformdirs.user_config_path("kernelwright") / "config.toml"


def secret(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The variable `name` of the environment; never a setting, so that nothing can print it."""
    return (os.environ if environ is None else environ).get(name) or None


def resolve(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user: Path | None = None,
) -> Resolved:
    """The Config for these flags (None means not given) in this environment and folder.

    Raises:
        ConfigError: a key is unknown or a value cannot be used; the message names its place.
    """
    environ = os.environ if environ is None else environ
    folder = Path.cwd() if folder is None else folder
    values: dict[str, object] = {}
    origins = {key: Origin(Source.DEFAULT) for key in _SETTINGS}
    layers = (
        _file_entries(user or user_file(), Source.USER),
        _project_entries(folder),
        _environment_entries(environ, folder),
        _flag_entries(flags or {}, folder),
    )
    for layer in layers:
        for entry in layer:
            values[entry.key] = _parse_entry(entry)
            origins[entry.key] = entry.origin
    return Resolved(Config(**cast(dict[str, Any], values)), origins)


def _flag_entries(flags: Mapping[str, object], folder: Path) -> Iterator[_Entry]:
    for key, value in flags.items():
        if value is not None:
            place = "--" + key.replace("_", "-")
            yield _Entry(key, value, Origin(Source.FLAG, place), folder)


def _environment_entries(environ: Mapping[str, str], folder: Path) -> Iterator[_Entry]:
    if environ.get("NO_COLOR"):
        yield _Entry("color", "never", Origin(Source.ENVIRONMENT, "NO_COLOR"), folder)
    if home := environ.get("CUDA_HOME"):
        yield _Entry("cuda_home", home, Origin(Source.ENVIRONMENT, "CUDA_HOME"), folder)
    # Empty it hides all devices, as it does from any program.
    if (shown := environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        yield _Entry("devices", shown, Origin(Source.ENVIRONMENT, "CUDA_VISIBLE_DEVICES"), folder)
    if url := environ.get("OPENAI_BASE_URL"):
        yield _Entry("base_url", url, Origin(Source.ENVIRONMENT, "OPENAI_BASE_URL"), folder)
    for name in sorted(environ):
        if name.startswith(PREFIX):
            key = name.removeprefix(PREFIX).lower()
            yield _Entry(key, environ[name], Origin(Source.ENVIRONMENT, name), folder)


def _project_entries(folder: Path) -> Iterator[_Entry]:
    own = folder / "kernelwright.toml"
    if own.is_file():
        yield from _file_entries(own, Source.PROJECT)
    else:
        yield from _file_entries(
            folder / "pyproject.toml", Source.PROJECT, ("tool", "kernelwright")
        )


def _file_entries(path: Path, source: Source, table: tuple[str, ...] = ()) -> Iterator[_Entry]:
    try:
        text = path.read_text(encoding="utf-8")
        content: object = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return
    # A ValueError, too, is what the parser raises for a number of thousands of digits.
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"cannot read the configuration file {path}: {error}",
            hint="correct the file, or move it away to go on with the other settings",
        ) from error
    for name in table:
        content = content.get(name, {}) if isinstance(content, dict) else {}
    if not isinstance(content, dict):
        raise ConfigError(f"{'.'.join(table)} in {path} is not a table")
    for key, value in content.items():
        yield _Entry(key, value, Origin(source, f"{path}{_line_of(key, text)}"), path.parent)


def _line_of(key: str, text: str) -> str:
    pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    numbers = (n for n, line in enumerate(text.splitlines(), 1) if pattern.match(line))
    return next((f":{number}" for number in numbers), "")


def _parse_entry(entry: _Entry) -> object:
    setting = _SETTINGS.get(entry.key)
    if setting is None:
        near = difflib.get_close_matches(entry.key, _SETTINGS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_SETTINGS)}"
        raise ConfigError(f"unknown setting '{entry.key}' ({entry.origin})", hint=hint)
    if entry.origin.source is Source.PROJECT and not setting.metadata["is_project_safe"]:
        raise ConfigError(
            f"{entry.key} may not stand in a project's file ({entry.origin})",
            hint=f"give it as a flag, as {PREFIX}{entry.key.upper()}, or in {user_file()}",
        )
    try:
        return setting.metadata["parse"](entry.value, entry.base)
    except ValueError as error:
        raise ConfigError(
            f"{entry.key} = {_without_password(entry.value)} {error} ({entry.origin})",
            hint=f"{entry.key}: {setting.metadata['meaning']}",
        ) from error


def _without_password(value: object) -> str:
    """The value as written, without the password that somebody put into a URL."""
    return re.sub(r"//[^/\s]*@", "//…@", repr(value))
