"""What the store says of full disks, foreign files, damage and missing rights; nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright.errors import NoStoreError, StorageError
from kernelwright.tests.traces.store_parts import child, proposed
from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.store import Store

NOBODY = 65534


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_space(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with small_disk(tmp_path / "disk") as disk, Store.open(disk) as store:
        campaign = store.create(new_campaign)
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 150_000)
        written = 0

        def fill() -> None:
            nonlocal written
            while written < 10_000:
                store.append(campaign, proposed(written))
                written += 1

        with pytest.raises(StorageError) as caught:
            fill()
        assert "kernelwright.sqlite" in str(caught.value)
        assert "kept" in caught.value.hint
        with pytest.raises(StorageError, match="blob could not be written"):
            store.put_blob(b"y" * 300_000)
        assert not list(disk.glob("blobs/*/.new-*"))
        assert store.count(campaign) == 1 + written
        ballast.unlink()
        store.append(campaign, proposed(written))
        assert store.count(campaign) == 2 + written


def test_a_limit_on_file_sizes_is_a_storage_error(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from kernelwright.errors import StorageError\n"
        "from kernelwright.traces.events import CampaignResumed\n"
        "from kernelwright.traces.store import Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "count = 0\n"
        "try:\n"
        "    with Store.open(Path(sys.argv[1])) as store:\n"
        "        while True:\n"
        "            store.append(sys.argv[2], CampaignResumed())\n"
        "            count += 1\n"
        "except StorageError as error:\n"
        "    print(count, error, '|', error.hint)\n"
    )
    out, err = child(code, tmp_path, campaign).communicate()
    assert err == ""
    assert "the event could not be recorded" in out
    with Store.open(tmp_path, read_only=True) as store:
        assert store.count(campaign) == 1 + int(out.split()[0])


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a note")
    with pytest.raises(StorageError, match="home") as caught:
        Store.open(tmp_path / "home")
    assert "--home" in caught.value.hint
    assert (tmp_path / "home").read_text() == "a note"


def test_no_store_to_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no store") as caught:
        Store.open(tmp_path, read_only=True)
    assert "kernelwright run" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_somebody_is_about_to_make_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "kernelwright.sqlite"
    path.touch()
    for mode in ("DELETE", "WAL"):
        made = sqlite3.connect(path)
        made.execute(f"PRAGMA journal_mode = {mode}")
        with pytest.raises(NoStoreError, match="there is no store"):
            Store.open(tmp_path, read_only=True)
        made.close()
    Store.open(tmp_path).close()
    Store.open(tmp_path, read_only=True).close()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database(tmp_path: Path, read_only: bool) -> None:
    (tmp_path / "kernelwright.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageError, match="not a database") as caught:
        Store.open(tmp_path, read_only=read_only)
    assert "move it aside" in caught.value.hint


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "kernelwright.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    with pytest.raises(StorageError, match="not a store of kernelwright"):
        Store.open(tmp_path)


def test_a_newer_schema_is_told(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "kernelwright.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StorageError, match="schema version 99") as caught:
            Store.open(tmp_path, read_only=read_only)
        assert "upgrade" in caught.value.hint


def test_a_damaged_database_is_told(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        for number in range(60):
            store.append(campaign, proposed(number))
    path = tmp_path / "kernelwright.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with (
        Store.open(tmp_path, read_only=True) as store,
        pytest.raises(StorageError, match="malformed") as caught,
    ):
        store.events(campaign)
    assert ".recover" in caught.value.hint


def test_a_row_that_something_else_wrote_is_an_error(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        with sqlite3.connect(store.path) as connection:
            connection.execute("DROP TRIGGER events_stay")
            connection.execute("UPDATE events SET at = 'soon'")
        connection.close()
        with pytest.raises(StorageError, match="cannot be understood"):
            store.events(campaign)
        with pytest.raises(StorageError, match="is not the id of a campaign"):
            store.is_running("../elsewhere")


def test_an_event_of_another_version_is_told(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        connection = sqlite3.connect(store.path)
        connection.execute(
            "INSERT INTO events (campaign, at, kind, payload) VALUES (?, 0, 'x', ?)",
            (campaign, '{"kind": "candidate.praised"}'),
        )
        connection.commit()
        connection.close()
        with pytest.raises(StorageError, match="event 2 of campaign") as caught:
            store.events(campaign)
    assert "another version" in caught.value.hint


def as_nobody(code: str, *arguments: object) -> tuple[str, str]:
    """Runs the code as a user without rights, since root may write everywhere."""
    drop = f"import os; os.setgid({NOBODY}); os.setuid({NOBODY})\n" if os.geteuid() == 0 else ""
    imports = "from kernelwright.traces.store import Store\nimport kernelwright.traces.history\n"
    out, err = child(imports + drop + code, *arguments).communicate()
    return out, err


@pytest.fixture
def locked_home(new_campaign: CampaignStarted) -> Iterator[tuple[Path, str]]:
    """A home that nobody but root may write, in a folder that everybody may enter."""
    # pytest's own folders are closed to other users.
    base = Path(tempfile.mkdtemp(prefix="kernelwright-locked-"))
    home = base / "home"
    with Store.open(home) as store:
        campaign = store.create(new_campaign)
    base.chmod(0o755)
    home.chmod(0o555)
    (home / "kernelwright.sqlite").chmod(0o444)
    yield home, campaign
    home.chmod(0o755)
    shutil.rmtree(base)


def test_a_read_only_home_is_read_as_immutable(locked_home: tuple[Path, str]) -> None:
    home, campaign = locked_home
    code = (
        "import sys; from pathlib import Path\n"
        "with Store.open(Path(sys.argv[1]), read_only=True) as store:\n"
        "    print(store.is_immutable, store.campaigns(), store.is_running(sys.argv[2]))\n"
    )
    out, err = as_nobody(code, home, campaign)
    assert (out.strip(), err) == (f"True ['{campaign}'] False", "")


def test_a_read_only_home_cannot_be_written(locked_home: tuple[Path, str]) -> None:
    home, _ = locked_home
    code = (
        "import sys; from pathlib import Path\n"
        "from kernelwright.errors import StorageError\n"
        "try:\n    Store.open(Path(sys.argv[1]))\n"
        "except StorageError as error:\n    print(error, '|', error.hint)\n"
    )
    out, err = as_nobody(code, home)
    assert err == ""
    assert str(home) in out
    assert "--home" in out
