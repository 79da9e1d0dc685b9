"""Run by the tests in a process of its own: the jails as another user, or on a poorer kernel.

`_elsewhere.py CACHE_DIR DENY... -- WHAT...`: DENY is `userns` or `landlock`; WHAT is the name of a
jail to probe, or `choose`. Prints one JSON object.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from pathlib import Path

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation import (
    BareJail,
    BubblewrapJail,
    Jail,
    LandlockJail,
    choose,
    probe,
)

JAILS: dict[str, type[BubblewrapJail] | type[LandlockJail] | type[BareJail]] = {
    kind.name: kind for kind in (BubblewrapJail, LandlockJail, BareJail)
}
NEWUSER = 0x10000000


def op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def deny(names: list[str]) -> None:
    """What a container's default filter does: EPERM for user namespaces, ENOSYS for Landlock."""
    unshare, clone = (272, 56) if os.uname().machine == "x86_64" else (97, 220)
    rules = op(0x20, 0)
    if "userns" in names:
        rules += op(0x15, 435, 0, 1) + op(0x06, 0x00050000 | 38)
        flagged = op(0x20, 16) + op(0x45, NEWUSER, 0, 1) + op(0x06, 0x00050001)
        flagged += op(0x06, 0x7FFF0000)
        rules += op(0x15, unshare, 0, 4) + flagged + op(0x15, clone, 0, 4) + flagged
    if "landlock" in names:
        rules += op(0x15, 444, 0, 1) + op(0x06, 0x00050000 | 38)
    rules += op(0x06, 0x7FFF0000)
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(rules)
    program = struct.pack("HxxxxxxP", len(rules) // 8, ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def chosen() -> Jail | PrerequisiteError:
    try:
        return choose()
    except PrerequisiteError as error:
        return error


def main() -> None:
    cache, rest = Path(sys.argv[1]), sys.argv[2:]
    middle = rest.index("--")
    if rest[:middle]:
        deny(rest[:middle])
    found: dict[str, object] = {}
    for what in rest[middle + 1 :]:
        if what == "choose":
            jail = chosen()
            is_none = isinstance(jail, PrerequisiteError)
            found[what] = {"name": "" if is_none else jail.name, "said": str(jail)}  # type: ignore[union-attr]
            if is_none:
                found["hint"] = jail.hint  # type: ignore[union-attr]
            continue
        jail = JAILS[what]()
        reason = jail.is_available()
        found[what] = (
            {"unavailable": reason} if reason else probe(jail, cache).model_dump(mode="json")
        )
    print(json.dumps(found))


main()
