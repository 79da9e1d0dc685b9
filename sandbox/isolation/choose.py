# SPDX-License-Identifier: Apache-2.0
"""Which jail this machine gets."""

from __future__ import annotations

from ...errors import PrerequisiteError, UnknownNameError
from .bare import BareJail
from .bubblewrap import BubblewrapJail
from .landlock import LandlockJail
from .model import Jail

CONFINING: tuple[type[BubblewrapJail] | type[LandlockJail], ...] = (BubblewrapJail, LandlockJail)
"""The jails that `auto` tries, best first."""

_REMEDY = (
    "install bubblewrap (apt install bubblewrap, dnf install bubblewrap) and allow unprivileged "
    "user namespaces, or use a kernel with Landlock (5.13 or later); "
    "--i-accept-weak-isolation with the jail 'bare' runs without confinement"
)


def choose(prefer: str = "auto") -> Jail:
    """The jail to use: really tried, never silently weaker than asked for.

    Args:
        prefer: `auto` (bubblewrap, else landlock), or the name of one jail. `bare` confines nothing
            and is only given to who asks for it.

    Raises:
        UnknownNameError: there is no such jail.
        PrerequisiteError: it does not work on this machine, with the reasons and the remedy.
    """
    if prefer == BareJail.name:
        return BareJail()
    known = {kind.name: kind for kind in CONFINING}
    if prefer != "auto" and prefer not in known:
        raise UnknownNameError.for_name("jail", prefer, ["auto", BareJail.name, *known])
    reasons = []
    for kind in CONFINING if prefer == "auto" else (known[prefer],):
        jail = kind()
        reason = jail.is_available()
        if reason is None:
            return jail
        reasons.append(f"{jail.name}: {reason}")
    raise PrerequisiteError(f"no sandbox works here ({'; '.join(reasons)})", hint=_REMEDY)
