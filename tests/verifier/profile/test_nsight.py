"""The profiler's command line, its table, and every way in which it refuses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.arithmetic import arithmetic_of
from kernelwright.kernelbench.products import device_of
from kernelwright.kernelbench.targets import architecture
from kernelwright.traces.records import Level, Measurement, Timing
from kernelwright.verifier.profile import ncu_csv, nsight
from kernelwright.verifier.profile.counters import Ceilings, with_counters, without_counters
from kernelwright.verifier.profile.metrics import load_packaged
from kernelwright.verifier.profile.occupancy import Demand, Term, occupancy

RECORDED = Path(__file__).parent / "ncu"
ONE = (RECORDED / "one.csv").read_text()
TWO = (RECORDED / "two.csv").read_text()
TIME = "gpu__time_duration.sum"
SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
TENSOR = "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"


def test_the_command_profiles_the_last_call_and_leaves_clocks_alone() -> None:
    words = nsight.command(
        Path("/opt/ncu"),
        ["host", "play"],
        ["a.sum", "b.pct"],
        ["spmm", "spmm", "fix.up"],
        Path("/tmp/log"),
        launches=3,
    )
    told = dict(pairwise(words))
    assert words[0] == "/opt/ncu"
    assert words[-2:] == ["host", "play"]
    assert told["--metrics"] == "a.sum,b.pct"
    assert told["--kernel-name"] == r"regex:^(fix\.up|spmm)$"
    assert (told["--launch-skip"], told["--launch-count"]) == ("6", "3")
    assert (told["--clock-control"], told["--replay-mode"]) == ("none", "kernel")
    assert (told["--page"], told["--print-units"]) == ("raw", "base")


def test_a_table_is_read_with_its_units() -> None:
    (launch,) = ncu_csv.read(ONE)
    assert (launch.kernel, launch.grid) == ("spmm_row", "(5000, 4, 1)")
    assert launch.figures[TIME] == (412608.0, "ns")
    assert launch.get("dram__bytes.sum") == 1_650_432_000
    assert launch.missing == (TENSOR,)
    assert launch.get(TENSOR) is None


@pytest.mark.parametrize("which", ["quick", "cudaforge", "full"])
def test_what_a_real_profiler_tells_beside_is_left_out(which: str) -> None:
    """Recorded on an H200 (ncu/README.md): ncu adds the device's attributes and extremes."""
    names = load_packaged().names("sm_90", which)
    (launch,) = ncu_csv.read((RECORDED / f"h200-{which}.csv").read_text())
    assert len(launch.figures) > 250
    asked = launch.keep_only(names)
    assert set(asked.figures) == set(names)
    assert asked.missing == ()


def test_our_occupancy_is_the_profilers() -> None:
    (launch,) = ncu_csv.read((RECORDED / "h200-full.csv").read_text())

    def told(name: str) -> int:
        value = launch.get(f"launch__{name}")
        assert value is not None
        return int(value)

    shared = told("shared_mem_per_block_static") + told("shared_mem_per_block_dynamic")
    demand = Demand(told("block_size"), told("registers_per_thread"), shared)
    limits = occupancy(demand, architecture("sm_90")).limits
    assert limits[Term.WARPS] == told("occupancy_limit_warps")
    assert limits[Term.REGISTERS] == told("occupancy_limit_registers")
    assert limits[Term.BLOCKS] == told("occupancy_limit_blocks")
    # The profiler tells no more than fit otherwise.
    assert min(limits[Term.SHARED], limits[Term.BLOCKS]) == told("occupancy_limit_shared_mem")


def test_several_launches_and_values_that_are_none() -> None:
    first, second = ncu_csv.read(TWO)
    assert first.kernel == "void scatter<float, 4>(const int *, float *)"
    assert (first.get(TIME), second.get(TIME)) == (100_000, 300_000)
    assert first.missing == (TENSOR,)


def test_a_table_without_units_is_read_too() -> None:
    lines = ONE.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    (launch,) = ncu_csv.read("\n".join(lines[: header + 1] + lines[header + 2 :]))
    assert launch.figures[TIME] == (412608.0, "")


def test_rows_that_broke_off_are_left_out() -> None:
    assert len(ncu_csv.read(TWO[:-60])) == 1
    assert ncu_csv.read("") == []
    assert ncu_csv.read("==PROF== Connected\n") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.5", 1234.5), ("n/a", None), ("(!) nan", None), ("", None), ("inf", None), ("-3", -3)],
)
def test_numbers(text: str, value: float | None) -> None:
    assert ncu_csv.number(text) == value


@pytest.mark.parametrize(
    ("words", "code", "reason", "hint"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
            "Performance Counters on the target device 0.",
            1,
            "administrators only",
            "CAP_SYS_ADMIN",
        ),
        (
            "==ERROR== Failed to initialize the profiler: LibraryNotLoaded",
            1,
            "cannot load the driver's profiling library",
            "outside",
        ),
        ("==WARNING== No kernels were profiled.", 0, "saw none of the candidate's kernels", "log"),
        (
            "==ERROR== Failed to find metric smsp__nope.sum",
            1,
            "does not know the metric smsp__nope.sum",
            "quick set",
        ),
        (
            "==ERROR== Profiling is not supported on this vGPU instance",
            1,
            "virtual or divided GPU",
            "whole device",
        ),
        ("==ERROR== Something else went wrong", 9, "ncu failed: Something else went wrong", ""),
        ("", 11, "exit status 11 and 0 profiled launches", ""),
    ],
)
def test_refusals_have_a_reason_and_a_remedy(words: str, code: int, reason: str, hint: str) -> None:
    found = nsight.read_result(words, "", code)
    assert isinstance(found, nsight.NotProfiled)
    assert reason in found.reason
    assert hint in found.hint


def test_a_table_with_a_failed_exit_is_no_result() -> None:
    assert isinstance(nsight.read_result(ONE, "", 1), nsight.NotProfiled)
    assert not isinstance(nsight.read_result(ONE, "", 0), nsight.NotProfiled)


SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then
    echo "NVIDIA (R) Nsight Compute Command Line Profiler"
    echo "Version 2025.3.1.0 (build 36398880) (public-release)"
    exit 0
fi
for word; do [ "$previous" = --log-file ] && log=$word; previous=$word; done
%s
"""


@pytest.fixture
def profiler(tmp_path: Path) -> Path:
    """A folder with a program called ncu, to be given a body."""
    (tmp_path / "ncu").write_text("")
    (tmp_path / "ncu").chmod(0o755)
    return tmp_path


def played(
    folder: Path, body: str, **more: float
) -> list[ncu_csv.ProfiledLaunch] | nsight.NotProfiled:
    (folder / "ncu").write_text(SCRIPT % body)
    ncu = nsight.find_ncu(str(folder))
    assert ncu is not None
    assert ncu.version == "2025.3.1.0"
    return nsight.measure(ncu, ["host"], ["a"], ["spmm_row"], launches=1, environment={}, **more)


def test_the_profilers_log_is_what_counts(profiler: Path) -> None:
    found = played(profiler, f"echo spmm says hello; cat {RECORDED / 'one.csv'} > $log")
    assert isinstance(found, list)
    assert found[0].kernel == "spmm_row"


def test_a_profiler_that_hangs_is_ended(profiler: Path) -> None:
    found = played(profiler, "sleep 600", timeout_s=1.0)
    assert isinstance(found, nsight.NotProfiled)
    assert "no result within 1 s" in found.reason


def test_there_may_be_no_profiler(tmp_path: Path) -> None:
    assert nsight.find_ncu(str(tmp_path)) is None


def test_whether_counters_are_for_administrators(tmp_path: Path) -> None:
    file = tmp_path / "params"
    assert nsight.counters_are_restricted(file) is None
    for text, is_so in (
        ("ResmanDebugLevel: 1\nRmProfilingAdminOnly: 1\n", True),
        ("RmProfilingAdminOnly: 0\n", False),
        ("other: 1\n", None),
    ):
        file.write_text(text)
        assert nsight.counters_are_restricted(file) is is_so


def h200(problem: str = "gemm") -> Ceilings:
    device = device_of("sm_90")
    assert device is not None
    return Ceilings.from_sheet(device, arithmetic_of(registry.get(problem)))


def test_a_profile_holds_figures_stalls_and_the_roofline() -> None:
    found = with_counters(
        ncu_csv.read(ONE), load_packaged(), "sm_90a", ncu_version="2025.3", ceilings=h200()
    )
    assert found.get(TIME) == 412608
    assert found.get("dram_gbs") == pytest.approx(4000.0)
    assert found.get("fp32_gflops") == pytest.approx((2 * 35.84e6 + 1.28e6) / 412608, rel=1e-6)
    assert found.get("intensity") == pytest.approx(72.96e6 / 1650.432e6, rel=1e-6)
    # Bound by memory, the share of the roofline is the share of the bandwidth.
    assert found.get("roofline_share") == pytest.approx(4000.0 / 4800.0, rel=1e-6)
    assert found.get("stall:long_scoreboard") == pytest.approx(9.8 / 12.0)
    assert found.get("stall:selected") is None
    levels = {metric.name: metric.level for metric in found.metrics}
    assert levels.pop("roofline_share") is Level.MODELLED
    assert set(levels.values()) == {Level.MEASURED}
    assert found.remarks[0] == "measured by the hardware's counters (ncu 2025.3)"
    assert "bound by memory: memory 83 %, SMs 21 % of their peaks" in found.remarks
    assert any(r.startswith("82% of stalled warps: long_scoreboard (waits") for r in found.remarks)
    assert f"not told by this device: {TENSOR}" in found.remarks


def test_launches_add_up_and_rates_are_weighed_by_time() -> None:
    found = with_counters(ncu_csv.read(TWO), load_packaged(), "sm_90", ncu_version="2025.3")
    assert found.get(TIME) == 400_000
    assert found.get("dram__bytes.sum") == 400e6
    assert found.get("dram_gbs") == pytest.approx(1000.0)
    assert found.get(SECTORS) == pytest.approx((16 * 1 + 4 * 3) / 4)
    # What a launch was given is the longest one's.
    assert found.get("launch__registers_per_thread") == 96
    assert "bound by the SMs: memory 25 %, SMs 65 % of their peaks" in found.remarks
    assert "75% of the time: combine, grid (157, 1, 1), block (128, 1, 1)" in found.remarks
    assert found.get("roofline_share") is None


def test_where_tensor_cores_worked_there_is_no_roofline() -> None:
    """The float32 pipes' operations are a part of them, and a share of the roof would be a lie."""
    text = ONE.replace("n/a", "37.5")
    found = with_counters(
        ncu_csv.read(text), load_packaged(), "sm_90a", ncu_version="2025.3", ceilings=h200()
    )
    assert found.get(TENSOR) == 37.5
    assert found.get("intensity") is None
    assert found.get("roofline_share") is None
    assert found.get("fp32_gflops") is not None
    assert any("tensor cores worked" in remark for remark in found.remarks)


def test_a_kernel_that_uses_neither_is_bound_by_latency() -> None:
    (first, _) = ncu_csv.read(TWO)
    found = with_counters([first], load_packaged(), "sm_90", ncu_version="2025.3")
    assert any(remark.startswith("bound by latency") for remark in found.remarks)


def test_without_counters_the_timing_is_left() -> None:
    why = nsight.read_result("==ERROR== ERR_NVGPUCTRPERM", "", 1)
    assert isinstance(why, nsight.NotProfiled)
    measured = Measurement(
        workload="w", candidate=Timing(median_us=100.0, low_us=99.0, high_us=101.0)
    )
    found = without_counters(why, measured, flops=1e9, moved=240e6, ceilings=h200())
    assert found.get("achieved_gbs") == pytest.approx(2400.0)
    assert found.get("memory_share") == pytest.approx(0.5)
    assert found.get("fp32_share") == pytest.approx(10_000 / 67_000)
    assert "measured by timing alone: performance counters are for admin" in found.remarks[0]
    assert "CAP_SYS_ADMIN" in found.remarks[0]
    whole = without_counters(why, measured, flops=1e9, moved=1.0, ceilings=h200("gemm_int8"))
    assert whole.get("fp32_share") is None
    assert whole.get("tensor_peak_share") == pytest.approx(10_000 / 1_979_000)
    assert any(m.unit == "of int8 on tensor cores" for m in whole.metrics)
    nothing = without_counters(why, None, flops=1.0, moved=1.0)
    assert nothing.metrics == ()
    assert "no timing" in nothing.remarks[0]
