# SPDX-License-Identifier: Apache-2.0
"""One campaign with its sources, prompts and replies as a file for somebody else.

A bundle is a ZIP file: `manifest.json`, the events as JSON lines, and the blobs that they name,
each under its SHA-256. Events leave the machine as they do in a report, without keys and home
folders; a blob that holds such a thing stays behind, since a changed one would not be what its name
says. Whoever opens one trusts nothing of it: every record is parsed, every blob has to be its name.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ..errors import KernelwrightError, UsageError
from .events import (
    CampaignStarted,
    CandidateProposed,
    Event,
    ModelReplied,
    ModelRequested,
)
from .faults import storage_faults
from .redact import Redactor
from .store import Store

FORMAT, VERSION = "kernelwright campaign", 1
MANIFEST, EVENTS, BLOBS = "manifest.json", "events.jsonl", "blobs/"
MOST_BYTES = 2 << 30
"""Of a bundle's members once they are unpacked."""


class Packed(NamedTuple):
    """What became of a campaign's record in a bundle."""

    events: int
    blobs: int
    kept_back: int
    """Blobs that hold what must not leave the machine."""
    missing: int
    """Blobs that are not there, or were changed."""


def pack(store: Store, campaign: str, file: Path) -> Packed:
    """Writes the bundle of a campaign.

    Raises:
        UnknownNameError: there is no such campaign.
        StorageError: it cannot be read, or the file cannot be written; nothing is left of that.
    """
    redactor = Redactor(store.home)
    events = [redactor.event(event) for event in store.events(campaign)]
    blobs = kept_back = missing = 0
    draft = file.with_name(f".{file.name}.new")
    with storage_faults("the bundle could not be written", file):
        try:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                for sha in dict.fromkeys(_list_blobs(events)):
                    try:
                        content = store.get_blob(sha)
                    except KernelwrightError:
                        missing += 1
                        continue
                    text = content.decode("utf-8", "replace")
                    if redactor.text(text) != text:
                        kept_back += 1
                        continue
                    archive.writestr(BLOBS + sha, content)
                    blobs += 1
                archive.writestr(EVENTS, "".join(f"{e.model_dump_json()}\n" for e in events))
                told = {"format": FORMAT, "version": VERSION, "campaign": campaign}
                archive.writestr(MANIFEST, json.dumps({**told, "blobs_kept_back": kept_back}))
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    return Packed(len(events), blobs, kept_back, missing)


def is_bundle(file: Path) -> bool:
    """Whether it looks like one."""
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(file) as archive:
        return MANIFEST in archive.namelist()
    return False


def check(file: Path) -> tuple[str, int]:
    """The campaign of a bundle and how many events it has, read as `unpack` would.

    Raises:
        UsageError: it is no bundle, or a damaged one.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            if (damaged := archive.testzip()) is not None:
                raise _damage_of(file, f"{damaged} is damaged")
            campaign, events = _read(archive, file)
    except (OSError, zipfile.BadZipFile) as error:
        raise _damage_of(file, str(error)) from error
    return campaign, len(events)


def unpack(file: Path, home: Path) -> str:
    """Puts the campaign of a bundle into a home, and gives its id.

    Raises:
        UsageError: it is no bundle, a damaged one, or one of a later version; or the home has it.
        StorageError: the home cannot be written.
    """
    try:
        with zipfile.ZipFile(file) as archive, Store.open(home) as store:
            campaign, events = _read(archive, file)
            for sha in dict.fromkeys(_list_blobs(events)):
                with suppress(KeyError):
                    if store.put_blob(archive.read(BLOBS + sha)) != sha:
                        raise _damage_of(file, f"{BLOBS}{sha} is not what its name says")
            store.adopt(campaign, events)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise _damage_of(file, str(error)) from error
    return campaign


def _read(archive: zipfile.ZipFile, file: Path) -> tuple[str, list[Event]]:
    if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
        raise _damage_of(file, f"it is more than {MOST_BYTES >> 30} GiB once unpacked")
    try:
        told = json.loads(archive.read(MANIFEST))
        lines = archive.read(EVENTS).splitlines()
        is_ours, version = told["format"] == FORMAT, told["version"]
        campaign = str(told["campaign"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damage_of(file, f"{error!r} in {MANIFEST} or {EVENTS}") from error
    if not is_ours:
        raise _damage_of(file, f"its {MANIFEST} is of something else")
    if version != VERSION:
        raise UsageError(
            f"{file} is a bundle of version {version}; this kernelwright reads {VERSION}",
            hint="open it with the version of kernelwright that made it",
        )
    try:
        events = [Event.model_validate_json(line) for line in lines]
    except ValidationError as error:
        raise _damage_of(file, f"{EVENTS}: {error.errors()[0]['msg']}") from error
    return campaign, events


def _list_blobs(events: Sequence[Event]) -> Iterator[str]:
    """The names of sources, prompts and replies."""
    for event in events:
        match event.payload:
            case CampaignStarted(source=sha) if sha:
                yield sha
            case CandidateProposed(candidate=sha):
                yield sha
            case ModelRequested(ask=sha) | ModelReplied(reply=sha):
                yield sha


def _damage_of(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file} cannot be opened as a bundle of a campaign: {why}",
        hint="`kernelwright bundle ID` makes one; was it copied whole?",
    )
