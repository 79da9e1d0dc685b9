"""A campaign as a file: whole where somebody else opens it, and trusted in nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import KernelwrightError, StorageError, UsageError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.bundling import EVENTS, MANIFEST, is_bundle, pack, unpack
from kernelwright.traces.events import CampaignStarted, Event
from kernelwright.traces.redact import Redactor
from kernelwright.traces.store import Store


@pytest.fixture
def packed(asked: Any, tmp_path: Path) -> Path:
    file = tmp_path / "campaign.zip"
    with Store.open(asked.home, read_only=True) as store:
        found = pack(store, asked.campaign, file)
        assert found.events == store.count(asked.campaign)
    assert found.blobs
    assert not found.kept_back
    return file


def plain(event: Event) -> tuple[float, Any]:
    return event.at, event.payload


def test_who_opens_it_has_the_same_campaign(packed: Path, asked: Any, tmp_path: Path) -> None:
    assert unpack(packed, tmp_path / "elsewhere") == asked.campaign
    with Store.open(asked.home, read_only=True) as one, Store.open(tmp_path / "elsewhere") as two:
        clean = Redactor(one.home).event
        assert [plain(clean(e)) for e in one.events(asked.campaign)] == [
            plain(e) for e in two.events(asked.campaign)
        ]
        assert two.lines()[0].campaign == asked.campaign
        assert not two.stale()
        for candidate in asked.candidates:
            assert two.get_blob(candidate) == one.get_blob(candidate)
    with pytest.raises(UsageError, match="already"):
        unpack(packed, tmp_path / "elsewhere")


def test_keys_and_home_folders_stay_behind(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    with Store.open(tmp_path / "home") as store:
        campaign = store.create(new_campaign.model_copy(update={"machine": {"at": "/home/me/x"}}))
        kept = store.put_blob("// a kernel")
        leaky = store.put_blob("// key: sk-abcdefghijklmnopqrstuvwx")
        for number, sha in enumerate((kept, leaky, "f" * 64), start=1):
            store.append(campaign, proposed(number, sha))
        found = pack(store, campaign, tmp_path / "c.zip")
    assert (found.blobs, found.kept_back, found.missing) == (1, 1, 1)
    with zipfile.ZipFile(tmp_path / "c.zip") as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert b"sk-abc" not in everything
    assert b"/home/me" not in everything
    unpack(tmp_path / "c.zip", tmp_path / "elsewhere")


def rewrite(file: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def damage_blob(members: dict[str, bytes]) -> None:
    members[next(name for name in members if name.startswith("blobs/"))] = b"something else"


def set_version(members: dict[str, bytes]) -> None:
    members[MANIFEST] = json.dumps({**json.loads(members[MANIFEST]), "version": 99}).encode()


def lose_start(members: dict[str, bytes]) -> None:
    members[EVENTS] = b"\n".join(members[EVENTS].splitlines()[1:])


def break_line(members: dict[str, bytes]) -> None:
    members[EVENTS] += b"{}\n"


def name_badly(members: dict[str, bytes]) -> None:
    members[MANIFEST] = json.dumps({**json.loads(members[MANIFEST]), "campaign": "../x"}).encode()


def empty(members: dict[str, bytes]) -> None:
    members[EVENTS] = b""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (damage_blob, "not what its name says"),
        (set_version, "version 99"),
        (lose_start, "do not begin with"),
        (break_line, EVENTS),
        (name_badly, "not the id of a campaign"),
        (empty, "do not begin with"),
        (lambda members: members.pop(EVENTS), "cannot be opened"),
        (lambda members: members.update({MANIFEST: b"[]"}), "cannot be opened"),
    ],
)
def test_a_damaged_one_is_refused_and_nothing_is_taken_in(
    packed: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], told: str
) -> None:
    rewrite(packed, change)
    with pytest.raises(KernelwrightError, match=re.escape(told)):
        unpack(packed, tmp_path / "elsewhere")
    with Store.open(tmp_path / "elsewhere") as store:
        assert not store.campaigns()


def test_what_is_no_bundle_is_told(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    packed.write_bytes(content[: len(content) // 2])
    assert not is_bundle(packed)
    assert not is_bundle(tmp_path / "nothing")
    with pytest.raises(UsageError, match="cannot be opened") as caught:
        unpack(packed, tmp_path / "elsewhere")
    assert "copied whole" in caught.value.hint


def test_a_file_that_cannot_be_written_leaves_nothing(asked: Any, tmp_path: Path) -> None:
    with (
        Store.open(asked.home, read_only=True) as store,
        pytest.raises(StorageError, match="bundle could not be written"),
    ):
        pack(store, asked.campaign, tmp_path / "no such folder" / "c.zip")
    assert not list(tmp_path.glob("**/*.new"))


def test_the_viewer_opens_it(packed: Path, asked: Any, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "kernelwright", "view", str(packed), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KERNELWRIGHT_HOME": str(tmp_path / "nothing")},
    ) as server:
        try:
            assert server.stderr is not None
            (address,) = re.findall(r"http://127\.0\.0\.1:\d+/c/\S+", server.stderr.readline())
            with urllib.request.urlopen(address, timeout=60) as reply:
                assert asked.campaign in reply.read().decode()
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0
