"""Launches held against what the compiler says of their kernels."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kernelwright.kernelbench.targets import REGISTERS_PER_SM, architecture
from kernelwright.sandbox.builders.model import KernelFacts
from kernelwright.sandbox.plan import PlanFault, PlanFaultKind, check_built
from kernelwright.sandbox.plan.limits import fits, registers_wrong
from kernelwright.tests.sandbox.plan.conftest import CUDA, TRITON, Bench

SM_90 = architecture("sm_90")
FACTS = KernelFacts(
    name="spmm_row",
    symbol="spmm_row",
    registers=40,
    shared_bytes=0,
    stack_bytes=0,
    spill_stores=0,
    spill_loads=0,
    parameters=(4, 4, 8, 8, 8, 8, 8, 8, 8, 4),
)


def checked(spmm: Bench, facts: KernelFacts, source: str = CUDA) -> PlanFault | None:
    return check_built(spmm.launches(source), [facts], SM_90, spmm.plan(source))


def test_a_kernel_that_fits(spmm: Bench) -> None:
    assert checked(spmm, FACTS) is None


@pytest.mark.parametrize(
    ("changes", "line", "words", "kind"),
    [
        (
            {"shared_bytes": 240_000},
            11,
            "asks for 0 dynamic + 240000 static = 240000 bytes of "
            "shared memory, sm_90 has at most 232448",
            PlanFaultKind.LIMIT,
        ),
        (
            {"registers": 256},
            10,
            "a thread has 256 registers, at most 255 exist",
            PlanFaultKind.LIMIT,
        ),
        (
            {"parameters": (4, 4, 8)},
            12,
            "the kernel has 3 parameters, and the launch gives 10 arguments",
            PlanFaultKind.MISTAKE,
        ),
        (
            {"parameters": (4, 4, 8, 8, 8, 8, 8, 4, 8, 4)},
            12,
            "argument 8 is a pointer, and the kernel's parameter has 4 bytes",
            PlanFaultKind.MISTAKE,
        ),
        (
            {"parameters": (4, 4, 8, 8, 8, 8, 8, 8, 8, 8)},
            12,
            "argument 10 is a float, and the kernel's parameter has 8 bytes",
            PlanFaultKind.MISTAKE,
        ),
        (
            {"parameters": (24, 4, 8, 8, 8, 8, 8, 8, 8, 4)},
            12,
            "argument 1 is an integer, and the kernel's parameter has 24 bytes",
            PlanFaultKind.MISTAKE,
        ),
        (
            {"parameters": (1, 4, 8, 8, 8, 8, 8, 8, 8, 4)},
            12,
            "argument 1 is 1000, which the kernel's parameter of 1 bytes cannot hold",
            PlanFaultKind.MISTAKE,
        ),
    ],
)
def test_a_kernel_that_does_not_fit(
    changes: dict[str, object], line: int, words: str, kind: PlanFaultKind, spmm: Bench
) -> None:
    fault = checked(spmm, replace(FACTS, **changes))
    assert fault is not None
    assert words in fault.reason
    assert fault.reason.startswith("spmm_row: ")
    assert (fault.line, fault.kind) == (line, kind)


def test_registers_of_a_large_block(spmm: Bench) -> None:
    large = CUDA.replace("[32, 4]", "[32, 32]")
    assert checked(spmm, replace(FACTS, registers=64), large) is None
    fault = checked(spmm, replace(FACTS, registers=65), large)
    assert fault is not None
    assert "1024 threads with 65 registers each need more than the 65536" in fault.reason
    assert (
        "use at most 896 threads, or cap the registers with __launch_bounds__(1024)" in fault.reason
    )


def test_the_number_of_threads_that_is_named_fits_and_the_next_does_not() -> None:
    draw = random.Random(4)
    for _ in range(500):
        registers, threads = draw.randint(33, 255), draw.randint(1, 1024)
        if (reason := registers_wrong(registers, threads, SM_90)) is None:
            assert registers * threads <= REGISTERS_PER_SM
            continue
        most = int(reason.partition("use at most ")[2].split()[0])
        assert most < threads
        assert registers_wrong(registers, most, SM_90) is None
        assert registers_wrong(registers, most + 1, SM_90) is not None


def test_a_triton_kernel_is_named_by_its_function(spmm: Bench) -> None:
    launches = spmm.launches(TRITON, "triton")
    facts = replace(FACTS, name=launches.kernels[0])
    fault = check_built(launches, [facts], SM_90, spmm.plan(TRITON, "triton"))
    assert fault is not None
    assert fault.line == 9
    without = check_built(launches, [facts], SM_90)
    assert without is not None
    assert (without.line, without.column) == (1, 1)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_integers_and_their_widths(size: int) -> None:
    top = 1 << (8 * size - 1)
    for value in (-top - 1, -top, -1, 0, top - 1, top, 2 * top - 1, 2 * top):
        signed = -top <= value < top
        unsigned = 0 <= value < 2 * top
        assert fits(value, size, is_signed=True) is signed
        assert fits(value, size, is_signed=False) is unsigned
        assert fits(value, size) is (signed or unsigned)
