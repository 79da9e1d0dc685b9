"""The bundle of a first contact: one file of JSON lines for each part, and what was asked.

A line is on the disk once `add` returns; a line that was cut off is left out when it is read, so
that a run which was killed leaves all that it had found. Nothing here knows what a record means.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ENDS = "ends"
"""The file of how parts ended."""
FILE = "bundle.tar.gz"
UNIT = "unit"
_ASKED = "asked.json"
_RECORDS = "records"

Record = dict[str, Any]

_HIDDEN = {
    Path(__file__).parent.parent.parent: ".",
    Path.home(): "~",
    Path(tempfile.gettempdir()): "TMP",
}
"""Paths of this machine, and what stands for them in records."""
_HIDDEN.pop(Path("/"), None)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What tells one device from all others."""


class Scene(NamedTuple):
    """Where and when it was; what every page says at its head."""

    device: str
    driver: str
    target: str
    date: str
    command: str
    is_stand_in: bool


class Records:
    """Those of one first contact, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, part: str, unit: str, **figures: Any) -> None:
        """Keeps what a unit of a part came to; of two with one name the later one counts."""
        line = json.dumps({UNIT: unit, **figures}, default=str)
        for path, instead in _HIDDEN.items():
            line = line.replace(str(path), instead)
        line = _UUID.sub("GPU-…", line)
        place = self._file(part)
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab+") as file:
            # After a line that was cut off the next one begins anew.
            if file.tell() and not _ends_a_line(place):
                file.write(b"\n")
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, part: str) -> dict[str, Record]:
        """By unit, in the order in which they were first kept."""
        found: dict[str, Record] = {}
        place = self._file(part)
        for line in place.read_bytes().splitlines() if place.exists() else []:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            found[record[UNIT]] = record
        return found

    def forget(self, part: str) -> None:
        """All of a part."""
        self._file(part).unlink(missing_ok=True)

    def ask(self, scene: Scene, sizes: Record) -> None:
        """Keeps what was asked, and where."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _replace(
            self.folder / _ASKED,
            json.dumps({"scene": scene._asdict(), "sizes": sizes}, indent=1).encode(),
        )

    def asked(self) -> tuple[Scene, Record] | None:
        """What was asked, and where; None: nothing yet."""
        place = self.folder / _ASKED
        if not place.exists():
            return None
        document = json.loads(place.read_text())
        return Scene(**document["scene"]), document["sizes"]

    def pack(self) -> Path:
        """All of it in one file, in place of an older one."""
        place = self.folder / FILE
        passing = place.with_suffix(".passing")
        with tarfile.open(passing, "w:gz") as archive:
            for path in (self.folder / _ASKED, *sorted((self.folder / _RECORDS).glob("*.jsonl"))):
                archive.add(path, path.relative_to(self.folder), filter=_without_owner)
        passing.replace(place)
        return place

    def _file(self, part: str) -> Path:
        return self.folder / _RECORDS / f"{part}.jsonl"


def unpack(bundle: Path, folder: Path) -> Records:
    """Those of a bundle: a folder is taken as it is, a file is unpacked."""
    if bundle.is_dir():
        return Records(bundle)
    with tarfile.open(bundle) as archive:
        archive.extractall(folder, filter="data")
    return Records(folder)


def _ends_a_line(place: Path) -> bool:
    with place.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _replace(place: Path, content: bytes) -> None:
    passing = place.with_suffix(".passing")
    passing.write_bytes(content)
    passing.replace(place)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
