"""The matrix is honest: it says of each jail what the jail does, whoever runs it and wherever."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.sandbox.isolation import BareJail, Jail, Outcome, choose, probe
from kernelwright.sandbox.isolation.canary import build_canary
from kernelwright.sandbox.isolation.canary_rows import ROWS, CanaryEvidence
from kernelwright.sandbox.isolation.canary_scene import SeenOutside
from kernelwright.sandbox.isolation.model import End
from kernelwright.traces.records import CAPABILITIES, Enforcement, Isolation

Elsewhere = Callable[..., dict[str, Any]]
NOBODY = 65534


def states(isolation: Isolation) -> dict[str, str]:
    return {name: one.state.value for name, one in isolation.capabilities.items()}


def told(found: dict[str, Any]) -> dict[str, str]:
    assert "unavailable" not in found, found
    return {name: one["state"] for name, one in found["capabilities"].items()}


@pytest.fixture(scope="session")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The canary, compiled once for all tests."""
    return build_canary(tmp_path_factory.mktemp("canary"))


@pytest.fixture
def cache(place: Path, canary: Path) -> Path:
    """A cache that holds the compiled canary, and where every user may write."""
    folder = place / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    shutil.copy(canary, folder)
    return folder


@pytest.fixture
def elsewhere(cache: Path) -> Elsewhere:
    """Runs `_elsewhere.py`, as nobody where asked, and gives what it printed."""

    def interpreter(user: int | None) -> str:
        for program in (sys.executable, "/usr/bin/python3"):
            try:
                done = subprocess.run(
                    [program, "-c", "import kernelwright.sandbox.isolation"],
                    env={"PYTHONPATH": os.pathsep.join(sys.path)},
                    user=user,
                    group=user,
                    extra_groups=None if user is None else [],
                    capture_output=True,
                    check=False,
                    cwd="/",
                )
            except PermissionError:
                continue
            if done.returncode == 0:
                return program
        pytest.skip(f"no interpreter that uid {user} may run has the packages")

    def run(*what: str, deny: tuple[str, ...] = (), user: int | None = None) -> dict[str, Any]:
        script = str(Path(__file__).with_name("_elsewhere.py"))
        done = subprocess.run(
            [interpreter(user), "-W", "error", script, str(cache), *deny, "--", *what],
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            timeout=200,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def test_a_confining_jail_is_fit_for_unattended_work(confining: Jail, cache: Path) -> None:
    isolation = probe(confining, cache)
    assert isolation.mechanism == confining.name
    assert tuple(isolation.capabilities) == CAPABILITIES
    assert isolation.lacking == ()
    found = states(isolation)
    assert found["fs_read"] == found["ptrace"] == "enforced"
    assert "absent" not in (found["pids"], found["mem"])


def test_bare_is_told_to_confine_nothing(cache: Path) -> None:
    isolation = probe(BareJail(), cache)
    found = states(isolation)
    assert [name for name, state in found.items() if state == "absent"] == [
        "fs_read",
        "fs_write",
        "net",
        "ptrace",
        "uid",
    ]
    assert (found["env"], found["kill_tree"]) == ("enforced", "partial")
    assert isolation.lacking == ("fs_write", "net", "kill_tree")


def test_the_matrix_is_measured_once_and_again_when_stale(cache: Path) -> None:
    jail = choose()
    first = probe(jail, cache)
    [file] = cache.glob("isolation-*.json")
    marked = file.read_text().replace(f'"mechanism":"{jail.name}"', '"mechanism":"from the cache"')
    file.write_text(marked)
    assert probe(jail, cache).mechanism == "from the cache"
    stale = json.loads(marked)
    stale["measured_at"] -= 2 * 86_400
    file.write_text(json.dumps(stale))
    assert states(probe(jail, cache)) == states(first)


def test_a_matrix_that_cannot_be_read_is_measured_anew(cache: Path) -> None:
    jail = choose()
    (cache / f"isolation-{jail.name}-{os.geteuid()}.json").write_text("{ not json")
    assert probe(jail, cache).mechanism == jail.name


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_an_ordinary_user_is_confined_too(elsewhere: Elsewhere) -> None:
    found = elsewhere("bubblewrap", "landlock", "bare", user=NOBODY)
    for name in ("bubblewrap", "landlock"):
        rows = told(found[name])
        needed = ("fs_read", "fs_write", "net", "ptrace", "kill_tree", "env")
        assert {row: rows[row] for row in needed} == dict.fromkeys(needed, "enforced")
        assert "absent" not in (rows["pids"], rows["mem"])
    assert told(found["bubblewrap"])["uid"] == "partial"
    assert told(found["landlock"])["uid"] == "absent"
    assert told(found["bare"])["fs_write"] == "absent"


@pytest.mark.slow
@pytest.mark.parametrize("user", [None, NOBODY])
def test_without_user_namespaces_landlock_is_chosen(elsewhere: Elsewhere, user: int | None) -> None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    found = elsewhere("choose", "bubblewrap", "landlock", deny=("userns",), user=user)
    if "unavailable" in found["landlock"]:
        pytest.skip(f"landlock does not work here: {found['landlock']['unavailable']}")
    assert "bwrap" in found["bubblewrap"]["unavailable"]
    assert found["choose"]["name"] == "landlock"
    rows = told(found["landlock"])
    assert {rows[name] for name in ("fs_read", "fs_write", "net", "kill_tree", "env")} == {
        "enforced"
    }


def test_with_neither_nothing_is_chosen_and_the_remedy_is_told(elsewhere: Elsewhere) -> None:
    found = elsewhere("choose", deny=("userns", "landlock"))
    assert found["choose"]["name"] == ""
    assert "bubblewrap:" in found["choose"]["said"]
    assert "landlock: this kernel has no Landlock" in found["choose"]["said"]
    assert "apt install bubblewrap" in found["hint"]


def _evidence(said: str, **seen: Any) -> CanaryEvidence:
    facts: dict[str, Any] = {
        "token": "feed",
        "was_written": False,
        "was_overwritten": False,
        "was_connected": False,
        "was_hindered": False,
        "survivors": 0,
        "outside_uid": 7,
        "own_uid": 1000,
        "capabilities": 0,
        "in_user_namespace": False,
    }
    ended = Outcome(End.EXITED)
    look = Outcome(End.EXITED, stdout=said.encode())
    return CanaryEvidence("landlock", look, ended, 128, ended, SeenOutside(**(facts | seen)))


REACHING = ("ptrace", "environ", "vm_read", "priority", "init", "signal")


@pytest.mark.parametrize("row", sorted(ROWS))
def test_a_silent_canary_proves_nothing(row: str) -> None:
    state, _ = ROWS[row](_evidence(""))
    assert state is Enforcement.ABSENT


def test_every_way_into_another_process_must_be_refused() -> None:
    said = {deed: f"{deed}=refused:no\n" for deed in REACHING}
    assert ROWS["ptrace"](_evidence("".join(said.values())))[0] is Enforcement.ENFORCED
    for deed in REACHING[:-1]:
        found, _ = ROWS["ptrace"](_evidence("".join((said | {deed: f"{deed}=done\n"}).values())))
        assert found is Enforcement.ABSENT


@pytest.mark.parametrize(
    ("row", "said", "seen"),
    [
        ("fs_write", "overwrite=refused:no", {"was_written": True}),
        ("fs_write", "overwrite=refused:no", {"was_overwritten": True}),
        ("net", "net_connect=refused:no\nnet_abstract=refused:no", {"was_connected": True}),
        ("kill_tree", "daemon=done", {"survivors": 1}),
        ("fs_read", "secret=read:feed", {}),
        ("ptrace", "ptrace=refused:no\nenviron=read:X=feed\nvm_read=refused:no", {}),
        ("ptrace", "".join(f"{deed}=refused:no\n" for deed in REACHING), {"was_hindered": True}),
        ("env", "env=CANARY_ALLOWED=yes\nenv=HOME=/root", {}),
        ("uid", "uid=65534", {"outside_uid": 1000}),
        (
            "uid",
            "uid=65534",
            {"outside_uid": 0, "own_uid": 0, "in_user_namespace": True, "capabilities": 4},
        ),
    ],
)
def test_what_is_seen_outweighs_what_is_claimed(row: str, said: str, seen: dict[str, Any]) -> None:
    state, _ = ROWS[row](_evidence(said, **seen))
    assert state is Enforcement.ABSENT
