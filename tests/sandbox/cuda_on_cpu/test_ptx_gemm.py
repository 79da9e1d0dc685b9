"""A tensor-core product in inline PTX: right in each build, and each mistake in it is caught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulation import Case, Machine, Step

from kernelwright.sandbox.builders.emulated import schedules
from kernelwright.sandbox.builders.model import EmulatedVariant
from kernelwright.sandbox.run.process import RunFault

SOURCE = Path(__file__).with_name("ptx_gemm.cu").read_text("utf-8")
M, N, K = 64, 128, 96


def product(source: str = SOURCE) -> tuple[Case, np.ndarray]:
    rng = np.random.default_rng(8)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    case = Case(
        source,
        ("gemm",),
        {"A": A.view(np.int16), "B": B.view(np.int16)},
        {"C": ("float32", (M, N))},
        (Step((N // 64, M // 64), 128, ("A", "B", "C", M, N, K)),),
    )
    return case, A.astype(np.float64) @ B.astype(np.float64)


def is_right(found: np.ndarray, exact: np.ndarray) -> bool:
    """As close as sums of 96 products in float32 are; half would be a thousand times off."""
    return bool(np.abs(found - exact).max() < 2e-5)


def macro_at(source: str, line: int) -> str:
    return source.splitlines()[line - 1].split("(")[0].strip()


@pytest.mark.parametrize("schedule", schedules(3))
def test_it_is_right_under_every_schedule(machine: Machine, schedule: str) -> None:
    case, exact = product()
    assert is_right(machine.run(case, schedule)["C"], exact)


def test_the_sanitizers_accept_it(machine: Machine) -> None:
    case, exact = product()
    assert is_right(machine.run(case, variant=EmulatedVariant.ASAN)["C"], exact)


def test_its_accesses_are_ordered(machine: Machine) -> None:
    case, exact = product()
    report = machine.report(case)
    assert is_right(report.outputs["C"], exact)
    assert report.races == ()
    assert report.unwritten == {}
    reads = [one for one in report.accesses if one.space == "shared" and one.operation == "read"]
    assert {macro_at(SOURCE, one.line) for one in reads} == {"LDMATRIX_X4", "LDMATRIX_X2_T"}
    # Rows of 80 and 144 bytes: eight of 16 bytes take each bank once.
    assert all(one.wavefronts == one.ideal_wavefronts for one in reads)


WRONG_ANSWERS = {
    "rows of A's fragment swapped": (
        "LDMATRIX_X4(a[i][0], a[i][1]",
        "LDMATRIX_X4(a[i][1], a[i][0]",
    ),
    "columns of A's fragment swapped": (
        "a[i][0], a[i][1], a[i][2], a[i][3], at",
        "a[i][0], a[i][2], a[i][1], a[i][3], at",
    ),
    "the fragment of C taken for rows of four": ("+ lane / 4;", "+ lane / 8;"),
    "B by rows": (".x2.trans.m8n8", ".x2.m8n8"),
    "another address of A": ("lane % 16][kk + lane / 16 * 8]", "lane / 2][kk + lane % 2 * 8]"),
    "sums in half": (
        """  asm volatile(
      "mma.sync""",
        """  uint32_t h[2];
  half2 x = __floats2half2_rn(d[0], d[1]), y = __floats2half2_rn(d[2], d[3]);
  h[0] = *(uint32_t*)&x, h[1] = *(uint32_t*)&y;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, "
      "{%6, %7}, {%0, %1};" : "+r"(h[0]), "+r"(h[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  x = *(half2*)&h[0], y = *(half2*)&h[1];
  d[0] = __low2float(x), d[1] = __high2float(x), d[2] = __low2float(y), d[3] = __high2float(y);
  if (false) asm volatile(
      "mma.sync""",
    ),
    "no wait": ("      CP_ASYNC_WAIT_GROUP(1);\n", ""),
    "a wait that leaves the last copy": ("CP_ASYNC_WAIT_GROUP(0)", "CP_ASYNC_WAIT_GROUP(1)"),
}


def mistaken(swap: tuple[str, str]) -> str:
    assert SOURCE.count(swap[0]) == 1, swap[0]
    return SOURCE.replace(*swap)


@pytest.mark.parametrize("name", WRONG_ANSWERS)
def test_a_mistake_gives_a_wrong_answer(machine: Machine, name: str) -> None:
    case, exact = product(mistaken(WRONG_ANSWERS[name]))
    assert not is_right(machine.run(case)["C"], exact)


@pytest.mark.parametrize("name", ["no wait", "a wait that leaves the last copy"])
def test_a_read_before_its_copy_has_arrived_is_a_race(machine: Machine, name: str) -> None:
    source = mistaken(WRONG_ANSWERS[name])
    races = machine.report(product(source)[0]).races
    found = {tuple(macro_at(source, line) for line in race.lines) for race in races}
    assert ("CP_ASYNC_CG", "LDMATRIX_X4") in found
    assert all("nothing has waited for it" in race.sentence for race in races if race.is_flight)
    assert any(race.is_flight for race in races)


BARRIER = "__syncthreads();"


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_is_a_race(machine: Machine, number: int) -> None:
    parts = SOURCE.split(BARRIER)
    source = parts[0] + (BARRIER + parts[1] + parts[2] if number else parts[1] + BARRIER + parts[2])
    races = machine.report(product(source)[0]).races
    assert races
    assert "CP_ASYNC_CG" in {macro_at(source, line) for race in races for line in race.lines}


def test_an_address_outside_the_array_is_told(machine: Machine) -> None:
    source = mistaken(("&Bs[stage][kk + lane % 16]", "&Bs[stage][kk + 64 + lane % 16]"))
    case, _ = product(source)
    with pytest.raises(RunFault) as caught:
        machine.run(case, variant=EmulatedVariant.ASAN)
    assert "out of bounds" in caught.value.log or "heap-buffer-overflow" in caught.value.log


def test_a_misaligned_row_is_told(machine: Machine) -> None:
    fault = machine.fault(product(SOURCE.replace("PAD = 8", "PAD = 4"))[0])
    assert "misaligned address" in fault.reason
    assert "line" in fault.reason
