# SPDX-License-Identifier: Apache-2.0
"""Writes an export to a folder, whole or not at all, and never over files of somebody else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from ...errors import UnknownNameError, UsageError
from .bundle import Bundle
from .check import check_bundle
from .forms import FORMS, Files, mark_caveat

MANIFEST = "MANIFEST.json"

# What pip and Python leave in a folder that was installed from.
_LEFTOVERS = ("build", "__pycache__")


def export(bundle: Bundle, form: str, out: Path, *, unverified: bool = False) -> list[Path]:
    """Writes the bundle in the given form as the folder `out`; the files' paths, sorted.

    `out` may be absent, empty, or an earlier export that nobody changed; that one is replaced.

    Raises:
        UnknownNameError: there is no such form; the hint names those that there are.
        UsageError: the candidate is not verified, the bundle cannot be exported, or `out` is
            taken or cannot be written.
    """
    if form not in FORMS:
        raise UnknownNameError.for_name("export format", form, FORMS)
    check_bundle(bundle, unverified=unverified)
    files = FORMS[form](bundle)
    files[MANIFEST] = mark_caveat(MANIFEST, _manifest(form, bundle, files), bundle.caveat)
    try:
        _refuse_foreign(out)
        _place(files, out)
    except OSError as error:
        raise UsageError(
            f"the export cannot be written to {out}: {error.strerror or error}",
            hint="name a new folder, where you may write, with -o DIR",
        ) from error
    return sorted(out / name for name in files)


def _manifest(form: str, bundle: Bundle, files: Files) -> bytes:
    listed = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    document = {
        "schema_version": 1,
        "made_by": "kernelwright export",
        "form": form,
        "candidate": bundle.candidate,
        "files": listed,
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def _refuse_foreign(out: Path) -> None:
    """Raises UsageError unless `out` is free or an earlier export as we wrote it."""
    if not out.exists() and not out.is_symlink():
        return
    if out.is_symlink() or not out.is_dir():
        raise UsageError(f"{out} is there and is not a folder", hint="choose another -o DIR")
    present = sorted(
        path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()
    )
    if not present:
        return
    listed = _read_manifest(out / MANIFEST)
    for name in present:
        parts = name.split("/")
        if parts[0].endswith(".egg-info") or any(part in _LEFTOVERS for part in parts):
            continue
        if name == MANIFEST and listed:
            continue
        content = out / name
        if name not in listed or content.is_symlink() or _sha256(content) != listed[name]:
            raise UsageError(
                f"{out} holds {name}, which is not as an export wrote it; nothing was changed",
                hint="choose an empty or new folder with -o DIR",
            )


def _read_manifest(manifest: Path) -> dict[str, str]:
    try:
        document = json.loads(manifest.read_text())
        files = document["files"]
        return {str(name): str(sha) for name, sha in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _place(files: Files, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the rename stays on one file system.
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as name:
        made, old = Path(name) / "new", Path(name) / "old"
        for relative, content in files.items():
            path = made / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if out.is_dir():
            out.rename(old)
        try:
            os.rename(made, out)
        except OSError:
            if old.is_dir():
                shutil.move(old, out)
            raise
