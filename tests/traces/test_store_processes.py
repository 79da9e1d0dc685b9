"""Several processes and threads at one store, some of which are killed."""

from __future__ import annotations

import signal
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from kernelwright.errors import NoStoreError, UsageError
from kernelwright.tests.traces.store_parts import child, proposed
from kernelwright.traces.events import CampaignStarted, CandidateProposed
from kernelwright.traces.store import Store

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
        # Lines that were read ahead are in the buffer, which `communicate` passes over.
        acknowledged += [int(line) for line in writer.stdout]
        writer.communicate()
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
    # Whoever reads meanwhile finds a store or none, and nothing that is half made.
    while any(other.poll() is None for other in others):
        with suppress(NoStoreError):
            Store.open(tmp_path / "new", read_only=True).close()
    assert [other.communicate()[1] for other in others] == [""] * 4


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
