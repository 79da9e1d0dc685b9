"""A jail is what was asked for, or an error that says what to do."""

from __future__ import annotations

import pytest

from kernelwright.errors import UnknownNameError
from kernelwright.sandbox.isolation import choose


def test_auto_gives_a_jail_that_confines() -> None:
    jail = choose()
    assert jail.name in ("bubblewrap", "landlock")
    assert jail.is_available() is None


def test_bare_is_given_only_by_name() -> None:
    assert choose("bare").name == "bare"


def test_an_unknown_jail_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="bublewrap") as caught:
        choose("bublewrap")
    assert "bubblewrap" in caught.value.hint
