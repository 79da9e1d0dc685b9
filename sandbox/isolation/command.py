"""What every jail asks of a command before it starts one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from ...errors import SandboxError

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
