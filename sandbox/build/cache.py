"""The build cache: what was built, under the hash of everything it depends on.

An entry is one file: a line with the SHA-256 of the rest, a line of JSON, then the artefact. It is
written beside its place and moved, and a damaged entry is as good as none. Only artefacts are
kept; failures are cheap to repeat. Knows nothing of compilers.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from ...errors import StorageError
from .model import Built


def key_of(parts: dict[str, object]) -> str:
    """The name of an entry: a hash over everything that decides the artefact."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def load(cache_dir: Path, key: str) -> Built | None:
    """The artefact stored under `key`, or None where there is none that is whole."""
    try:
        whole = _place(cache_dir, key).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"the build cache {cache_dir} cannot be read: {error}",
            hint="check its permissions or give another cache folder",
        ) from error
    digest, _, rest = whole.partition(b"\n")
    if hashlib.sha256(rest).hexdigest().encode() != digest:
        return None
    head, _, artefact = rest.partition(b"\n")
    facts = json.loads(head)
    if facts["key"] != key or hashlib.sha256(artefact).hexdigest() != facts["sha256"]:
        return None
    return Built(
        artefact=artefact,
        sha256=facts["sha256"],
        seconds=facts["seconds"],
        log=facts["log"],
        remarks=tuple(facts["remarks"]),
        command=tuple(facts["command"]),
        compiler=facts["compiler"],
        is_cached=True,
    )


def store(cache_dir: Path, key: str, built: Built) -> None:
    """Keeps `built` under `key`; readers see the old state or the whole new entry."""
    facts = {
        "key": key,
        "sha256": built.sha256,
        "seconds": built.seconds,
        "log": built.log,
        "remarks": built.remarks,
        "command": built.command,
        "compiler": built.compiler,
    }
    rest = json.dumps(facts).encode() + b"\n" + built.artefact
    place = _place(cache_dir, key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
            file.write(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
        os.replace(file.name, place)
    except OSError as error:
        raise StorageError(
            f"the build cache {cache_dir} cannot be written: {error}",
            hint="free space, check its permissions or give another cache folder",
        ) from error


def fresh(built: Built, seconds: float) -> Built:
    """A cached artefact with the time that finding it took."""
    return replace(built, seconds=seconds)


def _place(cache_dir: Path, key: str) -> Path:
    return cache_dir / "cpp" / key[:2] / key
