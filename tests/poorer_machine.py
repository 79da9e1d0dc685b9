"""Another machine, made of this one: without bwrap, without user namespaces, as an ordinary user.

As a program, `poorer_machine.py WITHOUT... -- COMMAND...` takes away what it is told (`bwrap`,
`userns`, `landlock`, `root`) and becomes the command; exit status 77 with the reason on stderr
where this machine does not let itself be made poorer. It needs the standard library only.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

NOBODY = 65534
CANNOT = 77
_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_REC, _PRIVATE, _BIND = 0x4000, 1 << 18, 0x1000


class CannotBeMade(Exception):
    """This machine does not let itself be made poorer; the reason."""


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def deny(names: Iterable[str]) -> None:
    """What a container's default filter does: EPERM for user namespaces, ENOSYS for Landlock."""
    unshare, clone = (272, 56) if os.uname().machine == "x86_64" else (97, 220)
    rules = _op(0x20, 0)
    if "userns" in names:
        rules += _op(0x15, 435, 0, 1) + _op(0x06, 0x00050000 | 38)
        flagged = _op(0x20, 16) + _op(0x45, _NEWUSER, 0, 1) + _op(0x06, 0x00050001)
        flagged += _op(0x06, 0x7FFF0000)
        rules += _op(0x15, unshare, 0, 4) + flagged + _op(0x15, clone, 0, 4) + flagged
    if "landlock" in names:
        rules += _op(0x15, 444, 0, 1) + _op(0x06, 0x00050000 | 38)
    rules += _op(0x06, 0x7FFF0000)
    buffer = ctypes.create_string_buffer(rules)
    program = struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(buffer))
    _call("prctl", 38, 1, 0, 0, 0)
    _call("prctl", 22, 2, program, 0, 0)


def hide_bwrap() -> None:
    """Covers bwrap, in a mount namespace of this process's own, by something not executable."""
    _call("unshare", _NEWNS)
    _call("mount", b"none", b"/", None, _REC | _PRIVATE, None)
    for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
        path = os.path.realpath(f"{folder}/bwrap")
        if os.path.isfile(path):
            _call("mount", b"/dev/null", path.encode(), None, _BIND, None)


def become_nobody() -> None:
    """For good, with no group left."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _call(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        raise CannotBeMade(f"{name}: {os.strerror(ctypes.get_errno())}")


def command(without: Iterable[str], arguments: Iterable[str]) -> list[str]:
    """The command line that runs `arguments` on the poorer machine."""
    return [sys.executable, "-I", __file__, *without, "--", *arguments]


@lru_cache
def python_path() -> str:
    """A PYTHONPATH by which every interpreter finds this package, whatever its folder's name."""
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-path-"))
    folder.chmod(0o755)
    (folder / "kernelwright").symlink_to(Path(__file__).resolve().parent.parent)
    atexit.register(shutil.rmtree, folder)
    return os.pathsep.join([str(folder), *filter(None, sys.path)])


@lru_cache
def interpreter(*, is_root: bool, imports: str) -> str:
    """A Python that may import `imports`, as nobody where this process is root and it is not to be.

    Raises:
        CannotBeMade: there is none.
    """
    without = () if is_root or os.geteuid() != 0 else ("root",)
    for program in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run(
            command(without, [program, "-c", f"import {imports}"]),
            env={"PYTHONPATH": python_path()},
            capture_output=True,
            check=False,
            cwd="/",
        )
        if done.returncode == 0:
            return program
    raise CannotBeMade("no interpreter that an ordinary user may run has the packages")


def main() -> None:
    """See the module's docstring."""
    middle = sys.argv.index("--")
    without, arguments = sys.argv[1:middle], sys.argv[middle + 1 :]
    steps: dict[str, Callable[[], None]] = {"bwrap": hide_bwrap, "root": become_nobody}
    try:
        for name, step in steps.items():
            if name in without:
                step()
        if {"userns", "landlock"} & set(without):
            deny(without)
        os.execv(arguments[0], arguments)
    except (CannotBeMade, OSError) as error:
        print(f"this machine cannot be made poorer: {error}", file=sys.stderr)
        sys.exit(CANNOT)


if __name__ == "__main__":
    main()
