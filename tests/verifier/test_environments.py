"""Six environments, one set of candidates: the same verdicts, and the matrix that is due there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import landlock
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.isolation.canary import build_canary
from kernelwright.sandbox.run.binary import runner_binary
from kernelwright.tests.poorer_machine import (
    CANNOT,
    NOBODY,
    CannotBeMade,
    command,
    interpreter,
    python_path,
)
from kernelwright.verifier.clock.roofline import measured_peaks

pytestmark = [pytest.mark.slow, pytest.mark.timed]
DRIVER = Path(__file__).with_name("_judge_elsewhere.py")
SEVEN = Path(__file__).parent / "seven"
IMPORTS = "kernelwright.verifier.request, scipy, numpy"
SCOPED_SIGNALS = 6
"""The version of Landlock that keeps a job's signals to itself."""


@dataclass(frozen=True)
class Environment:
    """Who runs the referee, what the machine lacks, and what must come of it."""

    without: tuple[str, ...]
    jail: str
    uid_row: str

    @property
    def is_root(self) -> bool:
        return "root" not in self.without


ENVIRONMENTS = {
    "root": Environment((), "bubblewrap", "partial"),
    "root, no bwrap": Environment(("bwrap",), "landlock", "enforced"),
    "root, no user namespaces": Environment(("userns",), "landlock", "enforced"),
    "user": Environment(("root",), "bubblewrap", "partial"),
    "user, no bwrap": Environment(("root", "bwrap"), "landlock", "absent"),
    "user, no user namespaces": Environment(("root", "userns"), "landlock", "absent"),
}
ENFORCED = ("fs_read", "fs_write", "net", "ptrace", "kill_tree", "env")

BURGLAR = """\
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>
static bool deed() {
    %s
}
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    static bool tried;
    if (!tried && deed()) _exit(9);
    tried = true;
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
"""
"""Honest, unless its deed succeeds."""

DAEMON = """prctl(PR_SET_NAME, "%s");
    const int child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        for (;;) pause();
    }
    return child > 0;"""
THIEF = 'return open("%s", O_RDONLY) >= 0;'
CALLER = """sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(%d);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with what takes time and does not depend on who runs it."""
    cache = tmp_path_factory.mktemp("warm")
    build_canary(cache)
    workshop = Workshop(BareJail(), cache, usable_cpus())
    runner_binary(workshop)
    measured_peaks(workshop)
    return cache


@pytest.fixture
def home(environment: Environment, warm: Path) -> Iterator[Path]:
    """A home that only its owner may pass, with a warm cache and a key."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-home-") as name:
        home = Path(name)
        shutil.copytree(warm, home / "cache")
        key = home / ".key"
        key.write_text("sk-planted")
        key.chmod(0o600)
        if os.geteuid() == 0 and not environment.is_root:
            for path in (home, *home.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        yield home


@pytest.fixture(params=list(ENVIRONMENTS))
def environment(request: pytest.FixtureRequest) -> Environment:
    """Each one that can be made here."""
    found = ENVIRONMENTS[request.param]
    if found.is_root and os.geteuid() != 0:
        pytest.skip("these tests do not run as root")
    if found.jail == "landlock" and landlock.abi() == 0:
        pytest.skip("this kernel has no Landlock")
    if found.jail == "landlock" and not found.is_root and landlock.abi() < SCOPED_SIGNALS:
        pytest.skip(f"Landlock {landlock.abi()} lets a job signal its user's other processes")
    probe = ["/bin/true"]
    if found.jail == "bubblewrap":
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            pytest.skip("bwrap is not installed")
        probe = [bwrap, "--unshare-user", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"]
    tried = subprocess.run(
        command(_without(found), probe), capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        kind = "cannot be made" if tried.returncode == CANNOT else "has no bubblewrap that works"
        pytest.skip(f"this environment {kind} here: {tried.stderr.strip()}")
    return found


def _without(environment: Environment) -> tuple[str, ...]:
    """Who is no root already need not become it."""
    if os.geteuid() == 0:
        return environment.without
    return tuple(name for name in environment.without if name != "root")


def judged(environment: Environment, home: Path, sources: dict[str, list[str]]) -> dict[str, Any]:
    """What the referee of that environment finds."""
    try:
        python = interpreter(is_root=environment.is_root, imports=IMPORTS)
    except CannotBeMade as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        command(_without(environment), [python, str(DRIVER)]),
        input=json.dumps({"cache": str(home / "cache"), "sources": sources}),
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": python_path(),
        },
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def names_of_processes() -> set[str]:
    """What every process calls itself."""
    found = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            found.add(comm.read_text().strip())
        except OSError:
            continue
    return found


def test_the_same_verdicts_everywhere_and_an_honest_matrix(
    environment: Environment, home: Path
) -> None:
    mark = "kwd" + secrets.token_hex(4)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sources = {
            "honest": [(SEVEN / "honest.cpp").read_text(), "full"],
            "wrong": [(SEVEN / "wrong.cpp").read_text(), "screen"],
            "crash": [(SEVEN / "crash.cpp").read_text(), "screen"],
            "daemon": [BURGLAR % (DAEMON % mark), "screen"],
            "thief": [BURGLAR % (THIEF % (home / ".key")), "screen"],
            "caller": [BURGLAR % (CALLER % listener.getsockname()[1]), "screen"],
        }
        found = judged(environment, home, sources)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert {name: told["status"] for name, told in found["told"].items()} == {
        "honest": "VERIFIED",
        "wrong": "INCORRECT",
        "crash": "CRASHED",
        "daemon": "CRASHED",
        "thief": "SCREENED",
        "caller": "CRASHED",
    }, found["told"]
    for name, call in (("daemon", "clone"), ("caller", "socket")):
        assert f"it made the system call {call}, " in found["told"][name]["reasons"][0]
    assert mark not in names_of_processes()
    isolation = found["isolation"]
    assert isolation["mechanism"] == environment.jail
    rows = {name: row["state"] for name, row in isolation["capabilities"].items()}
    assert {name: rows[name] for name in ENFORCED} == dict.fromkeys(ENFORCED, "enforced"), isolation
    assert rows["uid"] == environment.uid_row
    assert {rows["pids"], rows["mem"]} <= {"enforced", "partial"}
