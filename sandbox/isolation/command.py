# SPDX-License-Identifier: Apache-2.0
"""What every jail asks of a command and its Confinement before it starts anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ...errors import SandboxError
from .model import Confinement

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a command without a folder is looked for; the job's own PATH is not trusted with that."""


def checked_command(command: Sequence[str]) -> tuple[str, ...]:
    """The command with the full path of its program.

    Raises:
        SandboxError: it is empty, or there is no such program.
    """
    if not command:
        raise SandboxError("a job needs a command", hint="pass the program and its arguments")
    program = command[0]
    found = program if os.path.isabs(program) else shutil.which(program, path=SEARCH_PATH)
    if found is None or not os.path.isfile(found) or not os.access(found, os.X_OK):
        raise SandboxError(
            f"there is no program '{program}' to run",
            hint=f"give its full path, or install it into one of {SEARCH_PATH}",
        )
    return (found, *command[1:])


def check_paths(confinement: Confinement) -> None:
    """Refuses paths that a jail cannot give.

    Raises:
        SandboxError: one is missing, relative, or the root, which would give everything away.
    """
    for path in (*confinement.readable, *confinement.writable, *confinement.devices):
        if not path.is_absolute() or not path.exists():
            raise SandboxError(
                f"the job was to see {path}, which is not an existing absolute path",
                hint="make it before starting the job",
            )
        if path.resolve().parent == path.resolve():
            raise SandboxError(
                "the job was to see /, which is everything",
                hint="list the files and folders that it needs",
            )
