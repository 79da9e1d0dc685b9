"""A program of a part is ended with all that it has started, and ends with who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kernelwright.benchmarks.contact import processes

ROOT = Path(__file__).parents[2]
PATIENCE_S = 20.0


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until_gone(pid: int) -> None:
    ends = time.monotonic() + PATIENCE_S
    while is_alive(pid):
        assert time.monotonic() < ends
        time.sleep(0.02)


def read_pid(place: Path) -> int:
    ends = time.monotonic() + PATIENCE_S
    while not (place.exists() and place.read_text().strip()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return int(place.read_text())


def test_one_that_is_late_is_killed_with_what_left_its_session(tmp_path: Path) -> None:
    far = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {far}; exec sleep 300' & sleep 300"
    with (tmp_path / "log").open("wb") as log:
        process = processes.start(["/bin/sh", "-c", script], log, os.environ, tmp_path)
        pid = read_pid(far)
        assert os.getsid(pid) != os.getsid(process.pid)
        ended = processes.wait(process, 0.1)
    assert ended.is_late
    assert ended.status == -signal.SIGKILL
    wait_until_gone(pid)


def test_one_that_ends_by_itself_tells_its_status_and_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as said:
        process = processes.start(["/bin/sh", "-c", "echo no >&2; exit 3"], said, {}, tmp_path)
        ended = processes.wait(process, PATIENCE_S)
    assert (ended.status, ended.is_late) == (3, False)
    assert log.read_text() == "no\n"


def test_one_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    text = (
        "import os, time\n"
        "from pathlib import Path\n"
        "from kernelwright.benchmarks.contact import processes\n"
        f"log = open({str(tmp_path / 'log')!r}, 'wb')\n"
        f"child = processes.start(['sleep', '300'], log, os.environ, Path({str(tmp_path)!r}))\n"
        f"Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
        "time.sleep(300)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], cwd=ROOT) as parent:
        child = read_pid(tmp_path / "pid")
        assert is_alive(child)
        parent.kill()
        wait_until_gone(child)
