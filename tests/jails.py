"""What tests do on a machine without a jail: they skip, and say why."""

from __future__ import annotations

import functools

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.isolation import choose


@functools.lru_cache
def no_jail() -> str:
    """Why this machine has none; empty: it has one."""
    try:
        choose()
    except PrerequisiteError as error:
        return str(error)
    return ""


def skip_for_want_of_one(words: str) -> None:
    """Skips the running test where `words` complain that there is no jail, and there is none."""
    if no_jail() and no_jail() in words:
        pytest.skip(no_jail())
