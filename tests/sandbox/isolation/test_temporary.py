"""Every job has a folder for temporary files: its own, bounded, empty at first, gone with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.sandbox.interpreter import FLAGS, drop_nested_paths, homes, interpreter
from kernelwright.sandbox.isolation import BubblewrapJail, Confinement, End, Jail, Limits

LIMITS = Limits(wall_s=60.0, memory_bytes=1 << 30, temporary_bytes=8 << 20)
ASKS = """
import os, tempfile
place = tempfile.gettempdir()
print(place == os.path.realpath(os.environ["TMPDIR"]), os.listdir(place))
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile(dir=folder) as file:
    file.write(b"words")
open(tempfile.gettempdir() + "/left", "w").close()
"""


def python(jail: Jail, script: str, limits: Limits = LIMITS, **more):
    readable = drop_nested_paths(interpreter(), *homes())
    confinement = Confinement(readable=readable, **more)
    return jail.start([str(interpreter()), *FLAGS, "-c", script], confinement, limits)


@pytest.fixture(autouse=True)
def _parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Other jobs of this machine have their folders elsewhere: they come and go by themselves."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-test-") as name:
        Path(name).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", name)
        monkeypatch.setenv("TMPDIR", name)
        yield


def ours() -> set[str]:
    """The folders that jobs of these tests have for temporary files now."""
    return {path.name for path in Path(tempfile.gettempdir()).glob("kernelwright-job-*")}


def test_what_asks_for_a_temporary_folder_gets_an_empty_one(jail: Jail) -> None:
    for _ in range(2):
        outcome = python(jail, ASKS).wait()
        assert (outcome.end, outcome.code) == (End.EXITED, 0), outcome.stderr
        assert outcome.stdout == b"True []\n"


def test_it_can_be_used_where_processes_and_modes_are_denied(jail: Jail) -> None:
    outcome = python(jail, ASKS, may_fork=False, may_mark=False).wait()
    assert (outcome.end, outcome.code) == (End.EXITED, 0), outcome.stderr


def test_a_folder_that_the_caller_names_is_kept(jail: Jail, place: Path) -> None:
    env = {"TMPDIR": str(place)}
    assert python(jail, ASKS, env=env, writable=(place,)).wait().stdout == b"True []\n"
    assert [path.name for path in place.iterdir()] == ["left"]


TREES = {
    "deep": "import os\nos.chdir(os.environ['TMPDIR'])\n"
    "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n",
    "closed": "import os\nos.chdir(os.environ['TMPDIR'])\nos.makedirs('a/b')\nos.mkdir('c', 0)\n"
    "os.symlink('/etc', 'etc')\nos.chmod('a', 0o500)\n",
}


@pytest.mark.parametrize("tree", [pytest.param("deep", marks=pytest.mark.slow), "closed"])
def test_nothing_of_it_is_left(jail: Jail, tree: str) -> None:
    before = ours()
    outcome = python(jail, TREES[tree]).wait()
    assert (outcome.end, outcome.code) == (End.EXITED, 0), outcome.stderr
    assert not ours() - before
    assert Path("/etc").is_dir()


def test_another_job_cannot_reach_it(confining: Jail) -> None:
    seen = "import os, time\nprint(os.environ['TMPDIR'], flush=True)\n"
    first = python(
        confining, seen + "open(os.environ['TMPDIR'] + '/a', 'w').close()\ntime.sleep(20)"
    )
    try:
        time.sleep(1.0)
        folders = {*ours(), "."}
        tries = "import os\nfor name in %r:\n    try:\n        print(os.listdir(%r + '/' + name))\n"
        tries += "    except OSError: print('refused')\n"
        told = python(confining, tries % (sorted(folders), tempfile.gettempdir())).wait().stdout
    finally:
        first.kill()
    assert b"'a'" not in told
    assert b"refused" in told or confining.name == BubblewrapJail.name


FILLS = {
    "one file": "    kept = kept or [open(place + '/a', 'wb', 0)]\n    kept[0].write(mib)\n",
    "many files": "    open(place + f'/{turn}', 'wb', 0).write(mib)\n",
    "files without names": "    kept.append(open(place + '/a', 'wb', 0))\n"
    "    os.unlink(place + '/a')\n    kept[-1].write(mib)\n",
    "files that never had one": "    kept.append(os.open(place, os.O_TMPFILE | os.O_WRONLY))\n"
    "    os.write(kept[-1], mib)\n",
}
FILLING = """
import os, time
place, mib, kept = os.environ["TMPDIR"], bytes(1 << 20), []
for turn in range(50):
    time.sleep(0.02)
"""


@pytest.mark.parametrize("way", FILLS)
def test_it_is_bounded(jail: Jail, way: str) -> None:
    """A tmpfs is full; elsewhere the job is ended."""
    outcome = python(jail, FILLING + FILLS[way]).wait()
    if jail.name == BubblewrapJail.name:
        assert b"No space left" in outcome.stderr
    else:
        assert outcome.end is End.TEMPORARY
        assert "of temporary files, the limit is 8.0 MiB" in outcome.detail


KILLED = """
import os, sys
from kernelwright.sandbox.isolation import Confinement, Limits, choose
job = choose(sys.argv[1]).start(["sh", "-c", "mkdir $TMPDIR/a; sleep 100"], Confinement(), Limits())
print(os.getpid(), flush=True)
job.wait()
"""


def test_it_goes_where_the_harness_is_killed(jail: Jail) -> None:
    before = ours()
    harness = subprocess.Popen(
        [sys.executable, "-c", KILLED, jail.name],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert harness.stdout is not None
    harness.stdout.readline()
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    harness.stdout.close()
    deadline = time.monotonic() + 20
    while ours() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not ours() - before
