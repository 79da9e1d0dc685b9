# SPDX-License-Identifier: Apache-2.0
"""The build cache: what was built, under the hash of everything it depends on.

An entry is one file: a line with the SHA-256 of the rest, a line of JSON, then the artefacts. It is
written beside its place and moved, and a damaged entry is as good as none. Only artefacts are
kept; failures are cheap to repeat. Knows nothing of compilers.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import StorageError
from .model import Built, DeviceBuilt, KernelFacts


def key_of(parts: dict[str, object]) -> str:
    """The name of an entry: a hash over everything that decides the artefact."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class BuildCache:
    """The entries of one folder."""

    folder: Path

    def load(self, key: str) -> Built | None:
        """The artefact stored under `key`, or None where there is none that is whole."""
        entry = self._read("cpp", key)
        return _read_built(entry.facts, entry.rest) if entry else None

    def store(self, key: str, built: Built) -> None:
        """Keeps `built` under `key`; readers see the old state or the whole new entry."""
        self._write("cpp", key, {"key": key, **_facts(built)}, built.artefact)

    def own(self, key: str, make: Callable[[], bytes], compiler: str = "") -> bytes:
        """What `make` makes, no candidate's build, and was made before where it is stored."""
        if (kept := self.load(key)) is not None:
            return kept.artefact
        started = time.monotonic()
        made = make()
        digest = hashlib.sha256(made).hexdigest()
        self.store(key, Built(made, digest, time.monotonic() - started, compiler=compiler))
        return made

    def count(self, key: str, most: int) -> int:
        """How often something was asked for, this time included; told up to `most`.

        Raises:
            StorageError: the folder cannot be used.
        """
        place = self._place("asked", key)
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with place.open("ab") as asked:
                if asked.tell() < most:
                    asked.write(b".")
                return asked.tell()
        except OSError as error:
            raise self._unwritable(error) from error

    def load_device(self, key: str) -> DeviceBuilt | None:
        """The cubins stored under `key` with their kernels, or None."""
        entry = self._read("device", key)
        if entry is None:
            return None
        cubins, at = [], 0
        for facts in entry.facts["cubins"]:
            cubins.append(_read_built(facts, entry.rest[at : at + facts["size"]]))
            at += facts["size"]
        if None in cubins:
            return None
        kernels = tuple(
            KernelFacts(**{**facts, "parameters": tuple(facts["parameters"])})
            for facts in entry.facts["kernels"]
        )
        return DeviceBuilt(
            entry.facts["architecture"], tuple(filter(None, cubins)), kernels, is_cached=True
        )

    def store_device(self, key: str, built: DeviceBuilt) -> None:
        """Keeps all cubins of `built` as one entry."""
        facts = {
            "key": key,
            "architecture": built.architecture,
            "cubins": [{**_facts(one), "size": len(one.artefact)} for one in built.cubins],
            "kernels": [asdict(kernel) for kernel in built.kernels],
        }
        rest = b"".join(one.artefact for one in built.cubins)
        self._write("device", key, facts, rest)

    def _read(self, kind: str, key: str) -> _Entry | None:
        try:
            whole = self._place(kind, key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"the build cache {self.folder} cannot be read: {error}",
                hint="check its permissions or give another cache folder",
            ) from error
        digest, _, rest = whole.partition(b"\n")
        if hashlib.sha256(rest).hexdigest().encode() != digest:
            return None
        head, _, content = rest.partition(b"\n")
        facts = json.loads(head)
        return _Entry(facts, content) if facts["key"] == key else None

    def _write(self, kind: str, key: str, facts: dict[str, Any], content: bytes) -> None:
        place = self._place(kind, key)
        rest = json.dumps(facts).encode() + b"\n" + content
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
                file.write(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
            os.replace(file.name, place)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(
            f"the build cache {self.folder} cannot be written: {error}",
            hint="free space, check its permissions or give another cache folder",
        )

    def _place(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key


def with_seconds(built: Built, seconds: float) -> Built:
    """A cached artefact with the time that finding it took."""
    return replace(built, seconds=seconds)


class _Entry(NamedTuple):
    facts: dict[str, Any]
    rest: bytes


def _facts(built: Built) -> dict[str, Any]:
    return {
        "sha256": built.sha256,
        "seconds": built.seconds,
        "log": built.log,
        "remarks": built.remarks,
        "command": built.command,
        "compiler": built.compiler,
        "listing": built.listing,
    }


def _read_built(facts: dict[str, Any], artefact: bytes) -> Built | None:
    if hashlib.sha256(artefact).hexdigest() != facts["sha256"]:
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
        listing=facts.get("listing", ""),
    )
