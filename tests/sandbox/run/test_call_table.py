"""The call table: one writer, whose numbers are those of both runners that read it."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

import kernelwright.sandbox.run as rooms
from kernelwright.errors import SandboxError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.plan.model import Launches
from kernelwright.sandbox.run import arena, call_table, runner
from kernelwright.sandbox.run.call_table import Passed, Role
from kernelwright.sandbox.run.once import CallInputs, Sheet

pytestmark = pytest.mark.jail

WIRE = Path(str(rooms.__file__)).with_name("wire.hpp").read_text()


def read(entry: bytes) -> list[Passed]:
    """As `wire.hpp` says: a count, role and value of each argument, then role and size of each."""
    (count,) = struct.unpack_from("<Q", entry)
    pairs = list(struct.iter_unpack("<QQ", entry[8 : 8 + 32 * count]))
    sizes = [size for _, size in pairs[count:]]
    return [Passed(Role(r), value, size) for (r, value), size in zip(pairs, sizes, strict=False)]


def test_an_entry_is_read_as_it_was_written() -> None:
    arguments = [
        call_table.integer(7),
        Passed(Role.INPUT | Role.FENCED, 4096, 28),
        Passed(Role.OUTPUT, 64, 28),
        Passed(Role.SCRATCH, 1 << 40, 1),
    ]
    assert read(call_table.pack_entry(arguments)) == arguments


def test_a_call_with_more_arguments_than_an_entry_holds_is_refused() -> None:
    most = call_table.MAX_ARGUMENTS // 2
    assert len(call_table.pack_entry([call_table.integer(1)] * most)) == call_table.ENTRY_BYTES
    with pytest.raises(SandboxError, match=f"{most + 1} arguments; a call has at most {most}"):
        call_table.pack_entry([call_table.integer(1)] * (most + 1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_ARGUMENTS", call_table.MAX_ARGUMENTS),
        ("MAX_SLOTS", call_table.MAX_SLOTS),
        ("GUARD_BYTES", arena.GUARD_BYTES),
    ],
)
def test_the_compiled_runners_have_the_same_numbers(name: str, value: int) -> None:
    found = re.search(rf"constexpr uint64_t {name} = (\d+);", WIRE)
    assert found is not None
    assert int(found[1]) == value


def test_the_compiled_runners_have_the_same_roles() -> None:
    told = re.search(r"enum Role : uint64_t \{(.*?)\}", WIRE)
    assert told is not None
    known = dict(re.findall(r"(\w+) = (\d+)", told[1]))
    assert {name: int(value) for name, value in known.items() if name != "ROLES"} == {
        role.name: role.value for role in Role.__members__.values()
    }


def test_the_python_runner_has_the_same_numbers() -> None:
    assert runner.MAX_SLOTS == call_table.MAX_SLOTS
    assert runner.ENTRY_BYTES == call_table.ENTRY_BYTES


def test_a_call_of_its_own_has_the_arguments_of_a_placed_one() -> None:
    """Only where things lie differs."""
    problem = registry.get("bias_gelu")
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(1)
    inputs = problem.values(structure, problem.families[0], rng)
    table = Launches((), ()).pack()
    with arena.Arena(*arena.footprint(problem, structure.axes)) as memory:
        slot = memory.place(problem, structure)
        placed = read(memory.copy_of_inputs())
        del slot
    call = CallInputs(problem, structure.axes, inputs, Launches((), ()))
    with Sheet(call).map_plane() as plane:
        entry = Path(f"/proc/self/fd/{plane.input_fd}").read_bytes()
    alone = read(entry)
    assert [(one.role, one.size) for one in alone[:-1]] == [(one.role, one.size) for one in placed]
    assert (alone[-1].role, alone[-1].size) == (Role.INPUT, len(table))
