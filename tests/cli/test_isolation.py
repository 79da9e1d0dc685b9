"""The isolation matrix in words: what cannot be done, what is lost, how to get it."""

from __future__ import annotations

import pytest

from kernelwright.cli.isolation import Grade, MachineTraits, lines
from kernelwright.traces.records import (
    CAPABILITIES,
    UNATTENDED_MINIMUM,
    Capability,
    Enforcement,
    Isolation,
)

from .conftest import Command

USER = MachineTraits(is_root=False, has_bubblewrap=False)
JAILS = ("bubblewrap", "landlock", "bare")


def matrix(mechanism: str, state: Enforcement, **others: Enforcement | None) -> Isolation:
    """Every row in one state, apart from the others; None leaves a row out."""
    states: dict[str, Enforcement | None] = {**dict.fromkeys(CAPABILITIES, state), **others}
    rows = {n: Capability(state=s, how=f"tried {n}") for n, s in states.items() if s}
    return Isolation(mechanism=mechanism, capabilities=rows)


@pytest.mark.parametrize("mechanism", JAILS)
def test_what_is_enforced_is_told_with_its_means(mechanism: str) -> None:
    first, *rows = lines(matrix(mechanism, Enforcement.ENFORCED), USER)
    assert "all that unattended runs need is enforced" in first.text
    assert len(rows) == len(CAPABILITIES)
    for name, line in zip(CAPABILITIES, rows, strict=True):
        assert line.grade is Grade.FINE
        assert line.text.startswith("a kernel here cannot ")
        assert f"when tried: tried {name})" in line.text
        assert not line.fix
    assert "a kernel here cannot open network connections (" in rows[2].text


def test_bubblewrap_closes_the_network_twice() -> None:
    rows = [line.text for line in lines(matrix("bubblewrap", Enforcement.ENFORCED), USER)]
    assert any("(system-call filter (seccomp), network namespace; when tried" in r for r in rows)


@pytest.mark.parametrize("mechanism", JAILS)
@pytest.mark.parametrize("state", [Enforcement.PARTIAL, Enforcement.ABSENT, None])
@pytest.mark.parametrize("name", CAPABILITIES)
def test_what_is_not_enforced_is_told_with_its_loss_and_a_remedy(
    name: str, state: Enforcement | None, mechanism: str
) -> None:
    found = matrix(mechanism, Enforcement.ENFORCED, **{name: state})
    first, *rows = lines(found, USER)
    line = rows[CAPABILITIES.index(name)]
    is_needed = name in UNATTENDED_MINIMUM
    assert line.grade is (Grade.MISSING if is_needed else Grade.WEAK)
    assert "cannot" not in line.text.partition("lost:")[0]
    assert line.fix
    assert (first.grade is Grade.MISSING) is is_needed
    assert (name in first.text) is is_needed
    assert [row.grade for row in rows].count(Grade.FINE) == len(CAPABILITIES) - 1
    if state is Enforcement.ABSENT:
        assert line.text.startswith("a kernel here can ")
        assert "; lost: " in line.text


def test_the_remedy_is_one_that_is_left_to_take() -> None:
    def fix(mechanism: str, machine: MachineTraits) -> str:
        return next(iter(lines(matrix(mechanism, Enforcement.ABSENT), machine))).fix

    assert "apt-get install bubblewrap" in fix("landlock", USER)
    assert "user namespaces" in fix("landlock", MachineTraits(is_root=False, has_bubblewrap=True))
    assert "leave out --jail bare" in fix("bare", USER)
    assert "--accept-weak-isolation" in fix("bare", USER)
    assert "install" not in fix("bubblewrap", USER)


@pytest.mark.slow
def test_doctor_tells_what_the_bare_jail_lets_through(kw: Command) -> None:
    done = kw("doctor", "--jail", "bare")
    assert done.code == 3
    assert "FAIL  sandbox    bare, tried with a hostile program: kernels that nobody" in done.out
    assert "FAIL  sandbox    a kernel here can open network connections" in done.out
    assert "lost: it can send away what it reads" in done.out
    assert "fix: leave out --jail bare" in done.out
    assert "PASS  sandbox    a kernel here cannot see your environment variables" in done.out
