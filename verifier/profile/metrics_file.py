# SPDX-License-Identifier: Apache-2.0
"""Writes the user's metrics' file: what was derived from measured candidates, and fitted to them.

Tables of other targets and families that are there already stay.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import StorageError
from .metrics import OWN, SCHEMA, catalogue


def write(
    home: Path, target: str, family: str, names: Sequence[str], derived_from: Mapping[str, int]
) -> Path:
    """Puts the names under [judge.TARGET.FAMILY]; gives the file's path.

    Raises:
        ConfigError: there is a file that cannot be used.
        StorageError: it cannot be written.
    """
    path, content = _read(home)
    judge = content.setdefault("judge", {})
    judge.setdefault(target, {})[family] = {"names": list(names)}
    sources = content.setdefault("derived", {}).setdefault(target, {})
    sources[family] = dict(derived_from)
    return _keep(path, content)


def write_scales(
    home: Path, target: str, scales: Mapping[str, float], fitted_to: Mapping[str, int]
) -> Path:
    """Puts factors of modelled times under [model.TARGET]; gives the file's path. Raises as
    `write`."""
    path, content = _read(home)
    content.setdefault("model", {})[target] = {n: round(s, 4) for n, s in scales.items()}
    content.setdefault("fitted", {})[target] = dict(fitted_to)
    return _keep(path, content)


def _read(home: Path) -> tuple[Path, dict[str, Any]]:
    catalogue(home)
    path = home / OWN
    return path, tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def _keep(path: Path, content: Mapping[str, Any]) -> Path:
    home = path.parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=home, delete=False, encoding="utf-8") as file:
            file.write(_text(content))
        os.replace(file.name, path)
    except OSError as error:
        raise StorageError(
            f"the metrics' file {path} cannot be written: {error.strerror}",
            hint="give another folder with --home",
        ) from error
    return path


def _text(content: Mapping[str, Any]) -> str:
    lines = [
        "# Written by `kernelwright metrics derive` and `fit`. Goes before what is packaged.",
        f"schema = {SCHEMA}",
    ]
    for name in ("judge", "derived", "model", "fitted"):
        lines += _tables(name, content.get(name, {}))
    return "\n".join(lines) + "\n"


def _tables(place: str, table: Mapping[str, Any]) -> list[str]:
    """A table's own values, then the tables in it."""
    own = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = ["", f"[{place}]"] if own else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in own.items()]
    for key, inner in table.items():
        if isinstance(inner, dict):
            lines += _tables(f"{place}.{_key(key)}", inner)
    return lines


def _key(name: str) -> str:
    is_bare = name.replace("_", "").replace("-", "").isalnum() and name.isascii()
    return name if is_bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[\n" + "".join(f"    {_value(one)},\n" for one in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
    return str(value)
