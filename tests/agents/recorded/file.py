"""A recorded campaign as a file: its events, and of its blobs the replies and the sources.

    python -m kernelwright.tests.agents.recorded.file HOME CAMPAIGN FILE

The prompts are left out: a replay finds replies by their places where the prompts have changed
since, and they have once anybody edits one.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kernelwright.traces.events import (
    CampaignStarted,
    CandidateProposed,
    Event,
    ModelReplied,
    Payload,
)
from kernelwright.traces.store import Store

OLD = "recorded"
"""Stands for the version of the prompts, which were others."""

_PAYLOAD: TypeAdapter[Payload] = TypeAdapter(Payload)


def write(store: Store, campaign: str, path: Path) -> None:
    """Writes a campaign of the store to a file."""
    events = store.events(campaign)
    blobs = {sha: store.get_blob(sha).decode() for sha in _needed(events)}
    told = [event.payload.model_dump(mode="json") for event in events]
    text = json.dumps({"events": told, "blobs": blobs}, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def content(path: Path) -> Any:
    """The file's `events`, as they were stored, and its `blobs`."""
    return json.loads(gzip.decompress(path.read_bytes()))


def read(path: Path, store: Store) -> str:
    """Puts a file's campaign into the store; its new name."""
    told = content(path)
    for sha, text in told["blobs"].items():
        assert store.put_blob(text) == sha, path.name
    first, *others = (_PAYLOAD.validate_python(payload) for payload in told["events"])
    assert isinstance(first, CampaignStarted)
    workflow = first.workflow_version.split("+")[0]
    campaign = store.create(first.model_copy(update={"workflow_version": f"{workflow}+{OLD}"}))
    for payload in others:
        store.append(campaign, payload)
    return campaign


def _needed(events: list[Event]) -> Iterator[str]:
    for payload in (event.payload for event in events):
        match payload:
            case CampaignStarted(source=source) if source:
                yield source
            case CandidateProposed(candidate=candidate):
                yield candidate
            case ModelReplied(reply=reply):
                yield reply


if __name__ == "__main__":
    home, name, out = sys.argv[1:]
    with Store.open(Path(home)) as opened:
        write(opened, opened.resolve(name), Path(out))
