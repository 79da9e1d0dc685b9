"""The jails under test, and how a test runs something in one."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from kernelwright.sandbox.isolation import (
    BareJail,
    BubblewrapJail,
    Confinement,
    Jail,
    LandlockJail,
    Limits,
    Outcome,
)

KINDS: dict[str, Callable[[], Jail]] = {
    "bubblewrap": BubblewrapJail,
    "landlock": LandlockJail,
    "bare": BareJail,
}
CONFINING = ("bubblewrap", "landlock")

Shell = Callable[..., Outcome]


@lru_cache
def made(name: str) -> Jail:
    jail = KINDS[name]()
    reason = jail.is_available()
    if reason is not None:
        pytest.skip(f"{name} does not work here: {reason}")
    return jail


@pytest.fixture(params=sorted(KINDS))
def jail(request: pytest.FixtureRequest) -> Jail:
    """Each of the jails that work here."""
    return made(request.param)


@pytest.fixture(params=CONFINING)
def confining(request: pytest.FixtureRequest) -> Jail:
    """Each of the jails that confine."""
    return made(request.param)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that a stranger may pass and write: only a jail can keep a job out of it."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-test-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def _shell(
    jail: Jail,
    script: str,
    *,
    limits: Limits | None = None,
    readable: tuple[Path, ...] = (),
    writable: tuple[Path, ...] = (),
    pass_fds: tuple[int, ...] = (),
    cpus: tuple[int, ...] = (),
    env: Mapping[str, str] | None = None,
    may_fork: bool = True,
) -> Outcome:
    """Runs a shell script in the jail and waits for it."""
    confinement = Confinement(
        readable=readable,
        writable=writable,
        pass_fds=pass_fds,
        cpus=cpus,
        env=env or {},
        may_fork=may_fork,
    )
    return jail.start(["sh", "-c", script], confinement, limits or Limits(wall_s=60.0)).wait()


@pytest.fixture
def shell() -> Shell:
    """`shell(jail, script, limits=…, readable=…)` gives the Outcome."""
    return _shell


@pytest.fixture(scope="session")
def attack() -> Iterator[Path]:
    """The compiled program of small deeds, where every uid may run it."""
    source = Path(__file__).with_name("_attack.cpp")
    with tempfile.TemporaryDirectory(prefix="kernelwright-attack-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = folder / "attack"
        subprocess.run(
            ["g++", "-std=c++17", "-O1", "-pthread", "-o", str(program), str(source)], check=True
        )
        program.chmod(0o755)
        yield program
