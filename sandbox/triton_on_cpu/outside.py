# SPDX-License-Identifier: Apache-2.0
"""How the house starts what is in this folder; the one module here that stays outside."""

from __future__ import annotations

import os
from pathlib import Path

from ..interpreter import FLAGS, drop_nested_paths, homes, interpreter
from ..run.host_code import RUNNER_FILES, packages

_HERE = Path(__file__).parent


def start_command(module: str) -> list[str]:
    """The command line that runs `module`, but for its arguments.

    Raises:
        PrerequisiteError: torch is not where packages are installed.
    """
    folders = os.pathsep.join(str(folder) for folder in packages())
    return [str(interpreter()), *FLAGS, str(_HERE / "start.py"), module, folders]


def readable_paths() -> tuple[Path, ...]:
    """What a jail must show for it. Raises PrerequisiteError."""
    return (*drop_nested_paths(interpreter(), *homes(), *packages()), _HERE, *RUNNER_FILES)
