# SPDX-License-Identifier: Apache-2.0
"""From what the canary said and what was seen to the rows of the matrix. Pure: it runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...traces.records import Enforcement
from .canary_scene import CanaryScene, SeenOutside
from .model import End, Outcome

Row = tuple[Enforcement, str]

ENFORCED, PARTIAL, ABSENT = Enforcement.ENFORCED, Enforcement.PARTIAL, Enforcement.ABSENT

_SILENT: Row = (ABSENT, "the canary did not say; nothing is proved")
_ADDED = ("PWD", "TMPDIR")
"""By bwrap; by every jail."""


@dataclass(frozen=True)
class CanaryEvidence:
    """All that is known after the three runs."""

    mechanism: str
    look: Outcome
    forks: Outcome
    forks_tried: int
    hog: Outcome
    scene: SeenOutside

    def claim(self, name: str) -> str:
        """What the looking canary said of one thing; empty: nothing."""
        return next(iter(claims(self.look, name)), "")

    def refusal(self, *names: str) -> str | None:
        """Why these were refused, or None where one was not, or was not told."""
        said = [self.claim(name) for name in names]
        if not all(one.startswith("refused:") for one in said):
            return None
        return said[0].removeprefix("refused:")


def claims(outcome: Outcome, name: str) -> list[str]:
    """The values of the `name=value` lines."""
    lines = outcome.stdout.decode(errors="replace").splitlines()
    return [line.split("=", 1)[1] for line in lines if line.startswith(f"{name}=")]


def _fs_read(e: CanaryEvidence) -> Row:
    said = e.claim("secret")
    if e.scene.token in said:
        return ABSENT, "it read a file outside what it was given"
    why = e.refusal("secret")
    return (ENFORCED, f"{_files(e)}: {why}") if why else _SILENT


def _fs_write(e: CanaryEvidence) -> Row:
    if e.scene.was_written or e.scene.was_overwritten:
        return ABSENT, "it wrote outside what it was given"
    why = e.refusal("overwrite")
    if why is None:
        return _SILENT
    # In a private file system a write may succeed and touch nothing of ours.
    return ENFORCED, f"{_files(e)}: {why}; nothing was written outside"


def _files(e: CanaryEvidence) -> str:
    return {"bubblewrap": "mount namespace", "landlock": "Landlock"}.get(e.mechanism, "file modes")


def _net(e: CanaryEvidence) -> Row:
    if e.scene.was_connected or e.claim("net_connect") == "done":
        return ABSENT, "it connected to a listener of this machine"
    why = e.refusal("net_connect", "net_abstract")
    if why is None:
        return _SILENT
    if e.claim("net_socket") == "done":
        return PARTIAL, f"it made an internet socket; connecting: {why}"
    return ENFORCED, f"seccomp refuses sockets: {why}"


def _ptrace(e: CanaryEvidence) -> Row:
    names = ("ptrace", "environ", "vm_read", "priority", "init")
    if e.scene.token in e.claim("environ"):
        return ABSENT, "it read the environment of another process"
    if e.scene.was_hindered:
        return ABSENT, "it took CPUs or priority from another process"
    done = [name for name in names if e.claim(name) == "done"]
    if done:
        return ABSENT, f"it reached into another process: {', '.join(done)}"
    why = e.refusal(*names)
    if why is None:
        return _SILENT
    if e.claim("signal") == "done":
        return PARTIAL, f"reaching in: {why}; but it may signal other processes"
    return ENFORCED, f"tracing, reading memory and environment, signals: {why}"


def _kill_tree(e: CanaryEvidence) -> Row:
    if e.scene.survivors < 0 or not e.claim("daemon"):
        return _SILENT
    if e.scene.survivors:
        return ABSENT, f"{e.scene.survivors} of its daemons outlived the job"
    if e.claim("daemon") != "done":
        return PARTIAL, f"no daemon could be started to be killed: {e.claim('daemon')}"
    if e.claim("signal") == "done":
        return PARTIAL, "its daemon was gone with the job; but it may kill its supervisor first"
    how = "pid namespace" if e.mechanism == "bubblewrap" else "subreaper and sweep"
    return ENFORCED, f"{how}: its daemon was gone with the job"


def _pids(e: CanaryEvidence) -> Row:
    if e.forks.end is End.PROCESSES:
        return PARTIAL, f"polled, the job was ended: {e.forks.detail}"
    made = next(iter(claims(e.forks, "forked")), "")
    if not made.isdigit():
        return ABSENT, f"the forking canary ended by {e.forks.end} {e.forks.code}"
    if int(made) >= e.forks_tried:
        return ABSENT, f"it made {made} processes"
    return ENFORCED, f"the kernel refused after {made} of {e.forks_tried} processes"


def _mem(e: CanaryEvidence) -> Row:
    if e.hog.end is not End.MEMORY:
        return ABSENT, f"the hog ended by {e.hog.end} {e.hog.code}"
    is_polled = "cgroup" not in e.hog.detail
    return (PARTIAL, f"polled: {e.hog.detail}") if is_polled else (ENFORCED, e.hog.detail)


def _env(e: CanaryEvidence) -> Row:
    names = {line.split("=", 1)[0] for line in claims(e.look, "env")}
    if not set(CanaryScene.ENV) <= names:
        return _SILENT
    extra = sorted(names - set(CanaryScene.ENV) - set(_ADDED))
    if extra or any(e.scene.token in line for line in claims(e.look, "env")):
        return ABSENT, f"it saw variables it was not given: {', '.join(extra)}"
    return ENFORCED, "it saw only what it was given"


def _uid(e: CanaryEvidence) -> Row:
    inside, outside = e.claim("uid"), e.scene.outside_uid
    if not inside or outside is None:
        return _SILENT
    if outside not in (0, e.scene.own_uid):
        rest = "" if not e.scene.capabilities else "; it may read past file modes"
        return ENFORCED, f"uid {outside}, ours is {e.scene.own_uid}{rest}"
    if e.scene.in_user_namespace and not e.scene.capabilities:
        return PARTIAL, f"uid {inside} inside, {outside} outside, without any capability"
    return ABSENT, f"it runs as uid {outside}"


ROWS: dict[str, Callable[[CanaryEvidence], Row]] = {
    "fs_read": _fs_read,
    "fs_write": _fs_write,
    "net": _net,
    "ptrace": _ptrace,
    "kill_tree": _kill_tree,
    "pids": _pids,
    "mem": _mem,
    "env": _env,
    "uid": _uid,
}
"""How each row of the matrix is judged."""
