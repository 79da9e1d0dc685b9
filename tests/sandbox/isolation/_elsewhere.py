"""Run by the tests in a process of its own: the jails as another user, or on a poorer kernel.

`_elsewhere.py CACHE_DIR DENY... -- WHAT...`: DENY is `userns` or `landlock`; WHAT is the name of a
jail to probe, or `choose`. Prints one JSON object.
"""

from __future__ import annotations

import json
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
from kernelwright.tests.poorer_machine import deny

JAILS: dict[str, type[BubblewrapJail] | type[LandlockJail] | type[BareJail]] = {
    kind.name: kind for kind in (BubblewrapJail, LandlockJail, BareJail)
}


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
