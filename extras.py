# SPDX-License-Identifier: Apache-2.0
"""Packages that only some commands need: which extra brings them, and whether it is installed."""

from __future__ import annotations

from importlib.util import find_spec

from .errors import PrerequisiteError

EXTRAS = {
    "view": ("fastapi", "uvicorn", "plotly", "pygments"),
    "llm": ("openai",),
    "tuner": ("kernel_tuner",),
}
"""The packages of an extra of `pyproject.toml`, by the names under which they are imported."""


def list_missing(extra: str) -> tuple[str, ...]:
    """What of an extra is not installed; nothing is imported."""
    return tuple(name for name in EXTRAS[extra] if find_spec(name) is None)


def require(extra: str, purpose: str) -> None:
    """Raises PrerequisiteError unless everything of the extra is installed.

    Args:
        purpose: What needs it, as the beginning of a sentence: `the viewer`.
    """
    if absent := list_missing(extra):
        raise PrerequisiteError(
            f"{purpose} needs {' and '.join(absent)}, which {_verb(absent)} not installed here",
            hint=f"pip install 'kernelwright[{extra}]'",
        )


def _verb(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"
