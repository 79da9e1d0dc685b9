# SPDX-License-Identifier: Apache-2.0
"""The Python that programs inside jails run in, and what a jail must show of it.

It is the one that runs the harness, started isolated. Knows nothing of what is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

FLAGS = ("-I", "-S", "-B", "-X", "utf8")
"""Isolated, without `site` and its .pth files, nothing written beside sources (B17)."""

_SYSTEM = (Path("/usr"), Path("/bin"), Path("/lib"))
"""What every jail shows anyway."""


def interpreter() -> Path:
    """The program behind the links of a virtual environment."""
    return Path(sys.executable).resolve()


def homes() -> tuple[Path, ...]:
    """Where the interpreter's own library lies, and what tells it so where it is a copy."""
    settings = Path(sys.prefix) / "pyvenv.cfg"
    prefixes = (Path(sys.base_prefix).resolve(), Path(sys.base_exec_prefix).resolve())
    return (*prefixes, settings) if settings.exists() else prefixes


def drop_nested_paths(*paths: Path) -> tuple[Path, ...]:
    """Without what lies below another of them, or is shown anyway."""
    distinct = list(dict.fromkeys(paths))
    return tuple(
        path
        for path in distinct
        if not any(path.is_relative_to(root) for root in _SYSTEM)
        and not any(path != other and path.is_relative_to(other) for other in distinct)
    )
