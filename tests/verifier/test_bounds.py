"""The bounds told before the first candidate: of CPUs, of a device, and of one that is not here."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.registry import get
from kernelwright.kernelbench.targets import architecture
from kernelwright.verifier.clock.bounds import bounds_of, modelled_bounds
from kernelwright.verifier.clock.roofline import Peaks

AXES = {"M": 20_000, "K": 20_000, "N": 128, "nnz": 90_000}
FETCHED = 90_000 * 128 * 4
HELD = 20_000 * 128 * 4


def peaks(*, l2: int, llc: int, cpus: tuple[int, ...] = (0, 1), source: str = "/sys") -> Peaks:
    return Peaks(
        bandwidth_gbs=10,
        llc_bandwidth_gbs=50,
        cache_bandwidth_gbs=100,
        flops_gflops=1e6,
        l2_bytes=l2,
        llc_bytes=llc,
        cpus=cpus,
        compiler="g++",
        cache_source=source,
    )


@pytest.mark.parametrize(
    ("l2", "llc", "rate", "place"),
    [
        (2 * HELD, 4 * HELD, 100, "second-level"),
        (HELD // 2, 4 * HELD, 50, "last-level"),
        (HELD // 4, HELD // 2, 10, "memory"),
    ],
)
def test_gathers_come_from_the_nearest_memory_that_holds_all_of_it(
    l2: int, llc: int, rate: float, place: str
) -> None:
    found = bounds_of(get("spmm_csr"), AXES, peaks(l2=l2, llc=llc))
    assert found.gather_us == pytest.approx(FETCHED / rate / 1e3)
    assert place in found.gathers
    assert found.gathers.startswith("B, 46.1 MB")
    assert found.source == "measured here"
    assert not found.is_modelled


def test_the_floor_is_the_one_that_a_measurement_is_held_against() -> None:
    problem = get("spmm_csr")
    found = bounds_of(problem, AXES, peaks(l2=0, llc=0))
    assert found.floor_us == pytest.approx(problem.bytes_moved(AXES) / 10 / 1e3)
    assert found.roof == "float32 multiply-adds"
    assert (found.bytes, found.flops) == (problem.bytes_moved(AXES), problem.flops(AXES))
    assert (found.gbs, found.gflops) == (pytest.approx(10.0), peaks(l2=0, llc=0).flops_gflops)
    floor = max(found.bytes / found.gbs, found.flops / found.gflops) / 1e3
    assert found.floor_us == pytest.approx(floor)


def test_a_dense_problem_gathers_nothing() -> None:
    found = bounds_of(get("gemm"), {"M": 64, "N": 64, "K": 64}, peaks(l2=1, llc=1))
    assert found.gather_us == 0
    assert found.gathers == ""


def test_a_device_gathers_from_l2_and_a_data_sheet_is_named() -> None:
    sheet = peaks(l2=0, llc=0, cpus=(), source="H200 SXM, vendor's data sheet (H200), dense")
    found = bounds_of(get("spmm_csr"), AXES, sheet)
    assert found.gathers.endswith("from L2")
    assert found.gather_us == pytest.approx(FETCHED / 100 / 1e3)
    assert found.is_modelled
    assert "data sheet" in found.source


def test_of_a_device_that_is_not_here_the_data_sheet_speaks() -> None:
    chip = architecture("sm_90")
    found = modelled_bounds(get("spmm_csr"), AXES, chip, device_of(chip.name))
    assert found is not None
    assert found.is_modelled
    assert "H200" in found.source
    floor = max(found.bytes / found.gbs, found.flops / found.gflops) / 1e3
    assert found.floor_us == pytest.approx(floor)
    # 132 SMs that take 32 bytes a cycle at 1.98 GHz: 8.4 TB/s.
    assert found.gather_us == pytest.approx(FETCHED / 8.37e6, rel=0.02)
    assert modelled_bounds(get("spmm_csr"), AXES, chip, None) is None
