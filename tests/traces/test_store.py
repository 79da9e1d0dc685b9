"""The store: what was recorded stays, whatever happens to the writer, the disk or the folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright.errors import StorageError, UnknownNameError, UsageError
from kernelwright.traces.events import CampaignStarted, CandidateProposed, ChampionChanged
from kernelwright.traces.store import Store

NOBODY = 65534


def proposed(number: int, candidate: str = "") -> CandidateProposed:
    return CandidateProposed(
        candidate=candidate or f"{number:064x}",
        number=number,
        language="cpp",
        family="row",
        operator="initial",
        note="n" * 200,
    )


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that imports the same package."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


def test_events_come_back_as_they_were(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    times = iter([10.0, 11.5, 12.0])
    with Store.open(tmp_path / "home", clock=lambda: next(times)) as store:
        campaign = store.create(new_campaign)
        written = [store.append(campaign, proposed(n)) for n in (1, 2)]
        events = store.events(campaign)
    assert [e.payload for e in events] == [new_campaign, proposed(1), proposed(2)]
    assert [e.at for e in events] == [10.0, 11.5, 12.0]
    assert events[1:] == written
    assert [e.seq for e in events] == sorted({e.seq for e in events})


def test_half_a_character_is_an_error_and_leaves_nothing(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        half = proposed(1).model_copy(update={"note": "\ud800"})
        with pytest.raises(StorageError, match=r"candidate\.proposed cannot be written"):
            store.append(campaign, half)
        assert len(store.events(campaign)) == 1


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


def test_ids_sort_by_time_and_are_unique(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    times = iter([1_700_000_000.0 + 0.5 * i for i in range(20)])
    with Store.open(tmp_path, clock=lambda: next(times)) as store:
        ids = [store.create(new_campaign) for _ in range(20)]
        assert store.campaigns() == ids[::-1]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{7}", name) for name in ids)


def test_only_newer_events_are_given_after_a_seq(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        first, second = store.create(new_campaign), store.create(new_campaign)
        seqs = [store.append(first, proposed(n)).seq for n in (1, 2, 3)]
        store.append(second, proposed(9))
        assert [e.seq for e in store.events(first, after=seqs[0])] == seqs[1:]
        assert store.last_seq(first) == seqs[-1]
        assert store.last_seq() == seqs[-1] + 1
        assert store.count(first, after=seqs[0]) == 2
        assert store.count(after=seqs[0]) == 3


def test_an_unknown_campaign_is_named(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    with Store.open(tmp_path) as store:
        name = store.create(new_campaign)
        for call in (
            lambda: store.append("nope", proposed(1)),
            lambda: store.events("nope"),
            lambda: store.last_seq("nope"),
            lambda: store.lease("nope"),
        ):
            with pytest.raises(UnknownNameError, match="no campaign named 'nope'") as caught:
                call()
            assert name in caught.value.hint


def test_events_can_be_neither_changed_nor_deleted(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        store.create(new_campaign)
        connection = sqlite3.connect(store.path)
        for statement in ("UPDATE events SET at = 0", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="events are never"):
                connection.execute(statement)
        connection.close()


WRITER = """
import sys
from pathlib import Path
from kernelwright.traces.events import CandidateProposed
from kernelwright.traces.store import Store
home, campaign, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Store.open(home) as store:
    number = first
    while True:
        source = f"source {number}"
        store.append(campaign, CandidateProposed(candidate=store.put_blob(source), number=number,
            language="cpp", family="row", operator="initial", note="n" * 3000))
        print(number, flush=True)
        number += 1
"""


def test_what_was_acknowledged_survives_kill_9(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
    first = 1
    for lines in (3, 17, 5, 9):
        writer = child(WRITER, tmp_path, campaign, first)
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.communicate()[0].split("\n") if line]
        with Store.open(tmp_path, read_only=True) as store:
            payloads = [e.payload for e in store.events(campaign)][1:]
            numbers = [p.number for p in payloads if isinstance(p, CandidateProposed)]
            # One more may be recorded whose acknowledgement was cut off.
            assert numbers == list(range(1, len(numbers) + 1))
            assert acknowledged[-1] <= numbers[-1] <= acknowledged[-1] + 1
            assert store.get_blob(payloads[-1].candidate) == b"source %d" % numbers[-1]
        first = numbers[-1] + 1
    check = sqlite3.connect(tmp_path / "kernelwright.sqlite")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


def test_readers_see_growing_prefixes_while_another_process_writes(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
    writer = child(WRITER, tmp_path, campaign, 1)
    try:
        assert writer.stdout is not None
        with Store.open(tmp_path, read_only=True) as reader:
            seen = 0
            for _ in range(30):
                acknowledged = int(writer.stdout.readline())
                numbers = [
                    e.payload.number
                    for e in reader.events(campaign)
                    if isinstance(e.payload, CandidateProposed)
                ]
                assert numbers == list(range(1, len(numbers) + 1))
                assert len(numbers) >= max(seen, acknowledged)
                seen = len(numbers)
    finally:
        writer.kill()
        writer.communicate()


def test_threads_and_processes_write_one_home(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    code = (
        "import sys; from pathlib import Path; from kernelwright.traces.store import Store\n"
        "from kernelwright.traces.events import CampaignResumed\n"
        "with Store.open(Path(sys.argv[1])) as s:\n"
        "    [s.append(sys.argv[2], CampaignResumed()) for _ in range(15)]\n"
    )
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        others = [child(code, tmp_path, campaign) for _ in range(2)]
        threads = [
            threading.Thread(target=lambda: [store.append(campaign, proposed(n)) for n in range(9)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in others:
            assert other.communicate()[1] == ""
        assert len(store.events(campaign)) == 1 + 3 * 9 + 2 * 15


def test_homes_are_made_by_several_processes_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from kernelwright.traces.store import Store\n"
        "Store.open(Path(sys.argv[1])).close()\n"
    )
    others = [child(code, tmp_path / "new") for _ in range(4)]
    assert [other.communicate()[1] for other in others] == [""] * 4


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


def test_a_lease_is_held_by_one_process_and_dies_with_it(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        code = (
            "import sys, time; from pathlib import Path\n"
            "from kernelwright.traces.store import Store\n"
            "with Store.open(Path(sys.argv[1])) as s, s.lease(sys.argv[2]):\n"
            "    print('held', flush=True); time.sleep(600)\n"
        )
        holder = child(code, tmp_path, campaign)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert store.is_running(campaign)
        with (
            pytest.raises(UsageError, match=f"being run by process {holder.pid} on"),
            store.lease(campaign),
        ):
            pytest.fail("two processes hold one lease")
        holder.kill()
        holder.communicate()
        assert not store.is_running(campaign)
        with store.lease(campaign):
            assert store.is_running(campaign)
        assert not store.is_running(campaign)


def test_campaigns_are_named_by_a_beginning_an_end_or_last(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    times = iter([1_700_000_000.25, 1_700_086_400.75])
    with Store.open(tmp_path, clock=lambda: next(times)) as store:
        with pytest.raises(UnknownNameError, match="there is no campaign in"):
            store.resolve("@last")
        first, second = store.create(new_campaign), store.create(new_campaign)
        assert store.resolve("@last") == second
        assert (
            store.resolve(first) == store.resolve(first[:8]) == store.resolve(first[-7:]) == first
        )
        with pytest.raises(UsageError, match="'2023' names 2 campaigns") as caught:
            store.resolve("2023")
        assert first in caught.value.hint
        for text in ("nope", ""):
            with pytest.raises(UnknownNameError):
                store.resolve(text)


def test_candidates_are_named_by_number_beginning_or_best(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    ids = ["ab" + "0" * 62, "ac" + "0" * 62, "12" + "f" * 62]
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        for number, name in enumerate(ids, 1):
            store.append(campaign, proposed(number, name))
        with pytest.raises(UsageError, match="no verified winner"):
            store.resolve_candidate(campaign, "@best")
        store.append(campaign, ChampionChanged(candidate=ids[1], credited=1.5))
        assert store.resolve_candidate(campaign, "@best") == ids[1]
        assert store.resolve_candidate(campaign, "1") == ids[0]
        assert store.resolve_candidate(campaign, "12") == ids[2]
        assert store.resolve_candidate(campaign, "ac") == ids[1]
        with pytest.raises(UsageError, match="names 2 candidates"):
            store.resolve_candidate(campaign, "a")
        with pytest.raises(UnknownNameError, match="no candidate of campaign"):
            store.resolve_candidate(campaign, "99")


def test_blobs_are_kept_by_content_and_verified(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        name = store.put_blob("naïve\x00")
        assert name == store.put_blob("naïve\x00".encode())
        assert store.get_blob(name) == "naïve\x00".encode()
        path = tmp_path / "blobs" / name[:2] / name[2:]
        path.write_bytes(b"tampered")
        with pytest.raises(StorageError, match="was changed after it was written"):
            store.get_blob(name)
        assert store.put_blob("naïve\x00") == name
        assert store.get_blob(name) == "naïve\x00".encode()
        with pytest.raises(UnknownNameError, match="there is no blob"):
            store.get_blob("0" * 64)
        with pytest.raises(StorageError, match="not the name of a blob"):
            store.get_blob("../../etc/passwd")
