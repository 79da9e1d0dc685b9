"""The floor of a machine, and the profile of a candidate."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.errors import SandboxError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.builders.compiler import Compiler, find_compiler
from kernelwright.sandbox.builders.model import Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.tests.verifier.sources import CPP
from kernelwright.traces.records import Level, Measurement, Status, Timing
from kernelwright.verifier.clock import roofline
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.profile.cpu import imbalance, profile
from kernelwright.verifier.request import Order, Task

PEAKS = roofline.Peaks(
    bandwidth_gbs=10,
    llc_bandwidth_gbs=50,
    cache_bandwidth_gbs=200,
    flops_gflops=100,
    l2_bytes=1_000_000,
    llc_bytes=10_000_000,
    cpus=(0,),
    compiler="g++",
)


@pytest.mark.parametrize(
    ("flops", "moved", "floor"),
    [
        (0, 1e6, 5.0),
        (0, 10e6, 5.0 + 180.0),
        (0, 110e6, 5.0 + 180.0 + 10_000.0),
        (1e9, 1e6, 10_000.0),
        (0, 0, 0),
    ],
    ids=["in L2", "in the last-level cache", "in memory", "arithmetic", "nothing"],
)
def test_the_floor_holds_data_against_the_cache_it_fits_in(
    flops: float, moved: float, floor: float
) -> None:
    assert roofline.floor_us(flops, moved, PEAKS, 100.0) == pytest.approx(floor)


@given(st.floats(0, 1e10), st.floats(0, 1e10), st.floats(0, 1e9), st.floats(0, 1e9))
def test_more_work_never_lowers_the_floor(
    flops: float, moved: float, more_flops: float, more_moved: float
) -> None:
    floor = roofline.floor_us(flops, moved, PEAKS, 100.0)
    assert roofline.floor_us(flops + more_flops, moved + more_moved, PEAKS, 100.0) >= floor
    assert floor >= moved / PEAKS.cache_bandwidth_gbs / 1e3 * (1 - 1e-9)


def test_a_time_below_half_of_the_floor_is_not_plausible() -> None:
    assert roofline.check_plausible(51.0, 100.0, "fp32").passed
    found = roofline.check_plausible(49.0, 100.0, "fp32")
    assert not found.passed
    assert (found.figure, found.limit) == (49.0, 50.0)
    assert "faster than this machine" in found.detail
    assert not roofline.check_plausible(float("nan"), 100.0, "fp32").passed


@pytest.mark.parametrize(
    ("name", "flags", "gflops", "words"),
    [
        ("gemm", {"avx2", "amx_bf16"}, 100.0, "float32 multiply-adds"),
        ("gemm_f16", {"avx2"}, 100.0, "float32 multiply-adds"),
        (
            "gemm_bf16",
            {"avx2", "amx_bf16"},
            None,
            "bytes alone: this processor has narrow products",
        ),
        ("gemm_tf32", {"avx2"}, 100.0, "float32 multiply-adds"),
        ("gemm_int8", {"avx2"}, None, "bytes alone: no peak of int8 is measured on CPUs"),
    ],
)
def test_on_cpus_a_peak_bounds_only_what_it_is_of(
    name: str, flags: set[str], gflops: float | None, words: str
) -> None:
    roof = roofline.roof_of(arithmetic_of(registry.get(name)), PEAKS, frozenset(flags))
    assert roof.gflops == gflops
    assert roof.words.startswith(words)


DEVICE = PEAKS.model_copy(
    update={
        "cpus": (),
        "flops_gflops": 60e3,
        "tensor_gflops": {"tf32": 400e3, "fp16": 800e3, "bf16": 780e3, "int8": 1500e3},
    }
)


@pytest.mark.parametrize(
    ("name", "gflops", "words"),
    [
        ("gemm", 130e3, "bf16 on tensor cores, 6 products for one"),
        ("gemm_f16", 800e3, "fp16 on tensor cores"),
        ("gemm_bf16", 780e3, "bf16 on tensor cores"),
        ("gemm_tf32", 400e3, "tf32 on tensor cores"),
        ("gemm_tf32x3", 400e3 / 3, "tf32 on tensor cores, 3 products for one"),
        ("gemm_int8", 1500e3, "int8 on tensor cores"),
    ],
)
def test_on_a_device_no_honest_kernel_of_a_policy_is_called_too_fast(
    name: str, gflops: float, words: str
) -> None:
    """A product in float16 at 80 % of its peak broke the floor of float32, and was SUSPECT."""
    allowed = arithmetic_of(registry.get(name))
    assert roofline.roof_of(allowed, DEVICE) == (pytest.approx(gflops), words)


def test_what_a_device_has_no_peak_of_makes_no_floor() -> None:
    without = DEVICE.model_copy(update={"tensor_gflops": {"bf16": 780e3}})
    roof = roofline.roof_of(arithmetic_of(registry.get("gemm_int8")), without)
    assert roof.gflops is None
    assert "no peak of int8 is known of this device" in roof.words
    assert roofline.floor_us(1e15, 1e6, without, roof.gflops) == pytest.approx(5.0)


def test_cache_sizes_count_what_is_shared_once(tmp_path: Path) -> None:
    rows = [
        ("0", "Data", 1, "48K"),
        ("1", "Instruction", 1, "32K"),
        ("2", "Unified", 2, "1024K"),
        ("3", "Unified", 3, "32M"),
    ]
    for cpu in (0, 1, 2):
        for index, kind, level, size in rows:
            entry = tmp_path / f"cpu{cpu}" / "cache" / f"index{index}"
            entry.mkdir(parents=True)
            (entry / "type").write_text(kind + "\n")
            (entry / "level").write_text(f"{level}\n")
            (entry / "size").write_text(size + "\n")
            shared = str(cpu) if level < 3 else ("0-1" if cpu < 2 else "2")
            (entry / "shared_cpu_list").write_text(shared + "\n")
    assert roofline.cache_sizes((0, 1), tmp_path)[:2] == (2 << 20, 32 << 20)
    assert roofline.cache_sizes((0, 1, 2), tmp_path)[:2] == (3 << 20, 64 << 20)
    unknown = roofline.cache_sizes((0, 1), tmp_path / "none")
    assert unknown[:2] == (2 * roofline.UNKNOWN_L2, roofline.UNKNOWN_LLC)
    assert unknown.source.startswith("assumed")


def test_the_peaks_of_this_machine_are_measured_once(tmp_path: Path) -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:1]
    workshop = Workshop(BareJail(), tmp_path, cpus)
    first = roofline.measured_peaks(workshop)
    assert 0.5 < first.bandwidth_gbs <= first.llc_bandwidth_gbs <= first.cache_bandwidth_gbs
    assert first.cache_bandwidth_gbs < 5_000
    assert 1 < first.flops_gflops < 5_000
    assert first.cpus == cpus
    (place,) = (tmp_path / "peaks").iterdir()
    before = place.stat()
    assert roofline.measured_peaks(workshop) == first
    assert place.stat().st_ino == before.st_ino


@pytest.mark.slow
def test_nobody_is_called_too_fast_by_peaks_of_a_busier_hour(tmp_path: Path, turns: Path) -> None:
    low = roofline.measured_peaks(Workshop(BareJail(), tmp_path, usable_cpus()))
    low = low.model_copy(update={name: getattr(low, name) / 1e4 for name in roofline.RATES})
    (place,) = (tmp_path / "peaks").iterdir()
    place.write_text(low.model_dump_json())
    tiny = registry.get("bias_gelu").workload("tiny")
    task = Task(
        problem="bias_gelu",
        workload=tiny,
        cache_dir=str(tmp_path),
        timing_lock=str(turns),
        baselines=("torch eager",),
    )
    with closing(open_referee(task)) as referee:
        verdict = referee.evaluate(Order(source=CPP % "", language="cpp"))
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert verdict.measurement is not None
    assert verdict.measurement.roofline is not None
    assert verdict.measurement.roofline < 1 / roofline.BROKEN
    assert "peaks" in verdict.seconds
    known = roofline.Peaks.model_validate_json(place.read_text())
    assert all(getattr(known, name) > 100 * getattr(low, name) for name in roofline.RATES)


def test_of_two_measurements_the_better_counts() -> None:
    busy = PEAKS.model_copy(update={"flops_gflops": 2.0, "bandwidth_gbs": 11.0})
    assert PEAKS.join(busy) == PEAKS.model_copy(update={"bandwidth_gbs": 11.0})
    slow = DEVICE.model_copy(update={"tensor_gflops": {"fp16": 1.0, "fp8": 2.0}})
    assert DEVICE.join(slow).tensor_gflops == {**DEVICE.tensor_gflops, "fp8": 2.0}


def test_a_compiler_that_fails_is_the_harness_failing(tmp_path: Path) -> None:
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho no good >&2\nexit 1\n")
    broken.chmod(0o755)
    assert find_compiler().path.exists()
    with pytest.raises(SandboxError, match="no good"):
        roofline.measure(Compiler(broken, "broken", True), (0,))


def measured(cpu_us: float | None) -> Measurement:
    return Measurement(
        workload="w",
        candidate=Timing(median_us=100, low_us=99, high_us=101),
        cpu_us=cpu_us,
        threads=2,
    )


def test_a_profile_names_what_was_vectorised_and_what_was_not() -> None:
    built = Built(
        b"",
        "",
        0.0,
        remarks=(
            "3: loop vectorized using 32 byte vectors",
            "3: loop vectorized using 64 byte vectors",
            "3: loop versioned for vectorization because of possible aliasing",
            "7: loop vectorized using 16 byte vectors",
            "9: not vectorized: control flow in loop",
        ),
        command=("g++",),
    )
    structure = Structure({"M": 4}, {"indptr": np.array([0, 6, 8, 9, 10], dtype=np.int32)})
    found = profile(built, structure, measured(150.0), flops=1e6, moved=2e6)
    assert found.get("vectorised_loops") == 2
    assert found.get("missed_loops") == 1
    assert found.get("vector_bytes") == 64
    assert found.get("imbalance") == pytest.approx(8 / 5)
    assert found.get("cpu_utilisation") == pytest.approx(0.75)
    assert found.get("achieved_gbs") == pytest.approx(20)
    assert found.get("achieved_gflops") == pytest.approx(10)
    levels = {m.name: m.level for m in found.metrics}
    assert levels["vector_bytes"] is Level.STATIC
    assert levels["achieved_gbs"] is Level.MEASURED
    assert found.remarks == built.remarks


def test_a_profile_says_where_the_floor_is_of_bytes_alone() -> None:
    built, structure = Built(b"", "", 0.0, remarks=("3: not vectorized",)), Structure({"M": 4})
    for roof, told in (("float32 multiply-adds", 1), ("bytes alone: no peak of int8", 2)):
        timed = measured(150.0).model_copy(update={"roof": roof})
        assert len(profile(built, structure, timed, flops=1, moved=1).remarks) == told


def test_a_profile_leaves_out_what_is_not_known() -> None:
    dense = profile(Built(b"", "", 0.0), Structure({"M": 4}), measured(None), flops=1, moved=1)
    assert dense.get("imbalance") is None
    assert dense.get("cpu_utilisation") is None
    assert dense.get("vectorised_loops") is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 8))
def test_imbalance_lies_between_even_and_all_in_one(lengths: list[int], threads: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    if indptr[-1]:
        assert 1 - 1e-9 <= imbalance(indptr, threads) <= threads + 1e-9
