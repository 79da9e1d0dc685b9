"""Who is to blame for a runner that does not come up: until it is ready, we are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from kernelwright.errors import PrerequisiteError, SandboxError
from kernelwright.sandbox.builders.model import Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail, Limits
from kernelwright.sandbox.run.begun import Plane
from kernelwright.sandbox.run.process import Runner
from kernelwright.sandbox.run.program import Program
from kernelwright.tests.descriptors import held, left_open_since

pytestmark = pytest.mark.jail


@pytest.fixture
def jail() -> Jail:
    try:
        return choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")


@pytest.fixture
def plane() -> Iterator[Plane]:
    fds = [os.memfd_create(name) for name in ("inputs", "outputs")]
    for fd in fds:
        os.ftruncate(fd, 4096)
    yield Plane(*fds, 4096, 4096)
    for fd in fds:
        os.close(fd)


def program(script: str, **more: float) -> Program:
    return Program(
        Built(b"", "", 0.0),
        {"note": b"what a process finds in its folder"},
        lambda _, folder: ["/bin/sh", "-c", script, "sh", str(folder)],
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no interpreter >&2; exit 97", "exit status 97: no interpreter"),
        ("kill -9 $$", "SIGKILL"),
        ("exit 0", "exit status 0"),
        ("cat $1/note >&2; exit 1", "what a process finds in its folder"),
    ],
)
def test_a_runner_that_does_not_start_is_our_failure(
    jail: Jail, plane: Plane, script: str, words: str
) -> None:
    with pytest.raises(SandboxError, match=words):
        Runner(Workshop(jail, Path("/nowhere")), program(script), plane, limits=Limits())


def test_so_is_one_that_says_nothing(jail: Jail, plane: Plane) -> None:
    silent = program("sleep 60", start_timeout_s=0.5)
    with pytest.raises(SandboxError, match=r"no answer within 0\.5 s"):
        Runner(Workshop(jail, Path("/nowhere")), silent, plane, limits=Limits())


class Refusing:
    """A jail that starts nothing."""

    name = "refusing"

    def is_available(self) -> None:
        return None

    def start(self, *_: object) -> NoReturn:
        raise SandboxError("no room for a jail")


def test_nothing_is_left_of_a_runner_whose_jail_does_not_start(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = held()
    with pytest.raises(SandboxError, match="no room for a jail"):
        Runner(Workshop(Refusing(), Path("/nowhere")), program("exit 0"), plane, limits=Limits())
    assert left_open_since(before) == set()
    assert list(tmp_path.iterdir()) == []
