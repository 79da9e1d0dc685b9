"""Triton's builder holds sources off each other and off this machine, and outlives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright import errors
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.sandbox.builders.triton import TritonBuilder
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.tests.sandbox.builders.triton_sources import HOST, build, built

NOSY = """
import os, pathlib, socket, subprocess
seen = []
def look(what, action):
    try:
        seen.append(f"{what}: {action()}")
    except Exception as error:
        pass
look("house", lambda: open(HOUSE).read())
look("etc", lambda: open("/etc/passwd").read())
look("home", lambda: os.listdir(HOME))
look("write", lambda: pathlib.Path(HOME, "left").write_text("x"))
look("packages", lambda: open(os.path.join(os.path.dirname(torch.__file__), "left"), "w"))
look("network", lambda: socket.create_connection(("127.0.0.1", 9), 1))
look("secrets", lambda: [k for k in os.environ if "KEY" in k or "TOKEN" in k] or 1 / 0)
look("parent", lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1))
look("tracing", lambda: os.readlink(f"/proc/{os.getppid()}/fd/3"))
if seen:
    raise ValueError("; ".join(seen))
"""


def nosy(home: Path) -> str:
    """Fails with what it could reach, be it the harness's own source or a folder of the user's."""
    return NOSY.replace("HOME", repr(str(home))).replace("HOUSE", repr(errors.__file__))


def test_code_that_runs_at_import_reaches_nothing(
    builder: TritonBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    built(builder, HOST + nosy(tmp_path))
    assert list(tmp_path.iterdir()) == []


LEAVES = """
import os, pathlib, subprocess, sys, tempfile
for folder in ("/tmp", "/dev/shm", os.getcwd(), os.path.dirname(os.getcwd())):
    try:
        pathlib.Path(folder, "left").mkdir()
        os.chmod(pathlib.Path(folder, "left"), 0)
        pathlib.Path(folder, "left.txt").write_text("x")
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"])
    os._exit(0)
triton.knobs.left = torch.left = True
"""
FINDS = """
import os, pathlib
found = [f for f in ("/tmp", "/dev/shm", os.getcwd(), os.path.dirname(os.getcwd()))
         for name in ("left", "left.txt") if os.path.lexists(os.path.join(f, name))]
found += ["torch"] if hasattr(torch, "left") or hasattr(triton.knobs, "left") else []
try:
    others = [p for p in os.listdir("/proc") if p.isdigit()]
    found += [p for p in others if b"sleep" in open(f"/proc/{p}/cmdline", "rb").read()]
except OSError:
    pass
if found:
    raise ValueError(f"found {found}")
"""


def test_one_source_leaves_nothing_for_the_next(builder: TritonBuilder) -> None:
    first = built(builder, HOST + LEAVES)
    assert built(builder, HOST + FINDS).launches == first.launches


def test_the_lines_of_a_flood_are_capped(builder: TritonBuilder) -> None:
    found = build(builder, HOST + "print('x' * (1 << 22))\nraise ValueError('end')\n")
    assert isinstance(found, BuildFailed)
    assert "ValueError: end" in found.reason
    assert len(found.log) < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_100", "sm_120"])
def test_other_targets(target: str, tmp_path: Path) -> None:
    with TritonBuilder(Workshop(choose("auto"), tmp_path), architecture(target)) as made:
        found = built(made, HOST)
    assert found.device.architecture == architecture(target).build_name


@pytest.mark.slow
def test_in_every_jail(jail, tmp_path: Path) -> None:
    with TritonBuilder(Workshop(jail, tmp_path), architecture("sm_90")) as made:
        built(made, HOST + nosy(tmp_path))
        built(made, HOST + LEAVES)
        built(made, HOST + FINDS)


@pytest.mark.slow
def test_a_build_without_end_is_stopped_and_the_next_one_works(tmp_path: Path) -> None:
    jail = choose("auto")
    with TritonBuilder(Workshop(jail, tmp_path), architecture("sm_90"), timeout_s=15.0) as made:
        made.await_ready()
        found = build(made, HOST + "while True: pass\n")
        assert isinstance(found, BuildFailed)
        assert found.is_resource
        assert "not done within 15 s" in found.reason
        built(made, HOST)


@pytest.mark.slow
def test_a_source_that_ends_its_builder_harms_itself_only(tmp_path: Path) -> None:
    with TritonBuilder(Workshop(choose("auto"), tmp_path), architecture("sm_90")) as made:
        found = build(made, HOST + "import os\nos.kill(os.getppid(), 9)\n")
        assert isinstance(found, BuildFailed)
        assert "the source ended its builder by SIGKILL" in found.reason
        built(made, HOST)


@pytest.mark.slow
def test_builds_run_side_by_side(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    sources = [HOST + f"# {n}\n" for n in range(6)]
    with (
        TritonBuilder(Workshop(choose("auto"), tmp_path), architecture("sm_90"), workers=2) as made,
        ThreadPoolExecutor(6) as pool,
    ):
        found = list(pool.map(lambda source: built(made, source), sources))
    assert len({one.launches for one in found}) == 1
