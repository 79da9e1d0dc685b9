"""Reports of compute-sanitizer, written by hand after its documentation (2025.3)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelwright.traces.records import Check
from kernelwright.verifier.stands import device_sanitizer

OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at spmm_row(int, int, const int *, float *)+0x1d0 in /tmp/x/candidate.cu:23
=========     by thread (31,0,0) in block (78,0,0)
=========     Address 0x7f11ac004e24 is out of bounds
=========     and is 4 bytes after the nearest allocation at 0x7f11ac000000 of size 20,000 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at spmm_row(int, int, const int *, float *)+0x1d0 in /tmp/x/candidate.cu:23
=========     by thread (30,0,0) in block (78,0,0)
=========
========= Target application returned an error
========= ERROR SUMMARY: 32 errors
"""
RACE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at reduce+0xe0 in candidate.cu:9
=========     and Read access at reduce+0x1a0 in candidate.cu:12 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
UNINITIALISED = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at accumulate+0x90 in candidate.cu:7
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f11ac000000
=========
========= ERROR SUMMARY: 1 error
"""
BARRIER = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at void tile<float>(float *)+0x2f0
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""


def clean_of(tool: str) -> str:
    if tool == "racecheck":
        return "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"  # noqa: E501
    return "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


@pytest.mark.parametrize("tool", device_sanitizer.TOOLS)
def test_a_clean_run_is_a_passed_check(tool: str) -> None:
    found = device_sanitizer.read(tool, clean_of(tool), 0)
    assert isinstance(found, Check)
    assert (found.passed, found.name) == (True, f"compute-sanitizer {tool}")


@pytest.mark.parametrize(
    ("tool", "said", "figure", "detail"),
    [
        (
            "memcheck",
            OUT_OF_BOUNDS,
            32,
            "Invalid __global__ write of size 4 bytes in spmm_row at line 23, 4 bytes after a "
            "tensor of 20,000 bytes",
        ),
        (
            "racecheck",
            RACE,
            1,
            "Race reported between Write access in reduce at lines 9 and 12",
        ),
        (
            "initcheck",
            UNINITIALISED,
            1,
            "Uninitialized __global__ memory read of size 4 bytes in accumulate at line 7",
        ),
        (
            "synccheck",
            BARRIER,
            1,
            "Barrier error detected. Divergent thread(s) in block. in tile<float>",
        ),
    ],
)
def test_a_report_becomes_one_sentence(tool: str, said: str, figure: int, detail: str) -> None:
    found = device_sanitizer.read(tool, said, device_sanitizer.FOUND)
    assert isinstance(found, Check)
    assert not found.passed
    assert found.figure == figure
    assert found.detail == detail


WARNED = """\
========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at stage+0xe0 in candidate.cu:9
=========     and Read access at stage+0x1a0 in candidate.cu:12 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
"""


@pytest.mark.parametrize("code", [0, device_sanitizer.FOUND])
def test_what_racecheck_only_warns_of_is_told_and_no_failure(code: int) -> None:
    """Pipelines of asynchronous copies raise such warnings, and may be meant so."""
    found = device_sanitizer.read("racecheck", WARNED, code)
    assert isinstance(found, Check)
    assert found.passed
    assert found.detail == (
        "racecheck warns: Race reported between Write access in stage at lines 9 and 12"
    )


def test_a_program_that_ends_early_is_not_clean_for_its_warnings() -> None:
    said = WARNED + "CUDA_ERROR_ILLEGAL_ADDRESS (700: an illegal memory access)"
    for words in (said, clean_of("racecheck")):
        found = device_sanitizer.read("racecheck", words, 90)
        assert isinstance(found, Check)
        assert not found.passed


def test_errors_lead_where_there_are_warnings_too() -> None:
    both = WARNED.rsplit("=========\n", 1)[0] + RACE.partition("\n")[2]
    both = both.replace("1 hazard displayed (1 error, 0", "2 hazards displayed (1 error, 1")
    found = device_sanitizer.read("racecheck", both, device_sanitizer.FOUND)
    assert isinstance(found, Check)
    assert not found.passed
    assert found.figure == 1
    assert "in reduce at lines 9 and 12" in found.detail


def test_an_end_without_a_summary_is_never_clean() -> None:
    for code in (0, 1, 97, -11):
        assert isinstance(device_sanitizer.read("memcheck", "", code), str)
    found = device_sanitizer.read("memcheck", "", device_sanitizer.FOUND)
    assert isinstance(found, Check)
    assert not found.passed
    # The same words with another exit status are still a report.
    assert not getattr(device_sanitizer.read("memcheck", OUT_OF_BOUNDS, 0), "passed", True)


def test_a_failure_of_the_candidate_is_one_and_of_the_device_is_none() -> None:
    said = "CUDA_ERROR_ILLEGAL_ADDRESS (700: an illegal memory access) while its kernels ran"
    found = device_sanitizer.read("memcheck", said, 90)
    assert isinstance(found, Check)
    assert "its kernels failed: CUDA_ERROR_ILLEGAL_ADDRESS" in found.detail
    assert isinstance(device_sanitizer.read("memcheck", "the device failed", 94), str)
    told = device_sanitizer.read("memcheck", "========= Error: No supported devices\n", 1)
    assert isinstance(told, str)
    assert "exit status 1 Error: No supported devices" in told


def stand_in(folder: Path, body: str) -> Path:
    program = folder / "compute-sanitizer"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    program.chmod(0o755)
    return program


def test_the_tool_is_run_over_the_host_program(tmp_path: Path) -> None:
    body = "print(sys.argv); print('========= ERROR SUMMARY: 0 errors')"
    program = stand_in(tmp_path, body)
    assert device_sanitizer.find(str(tmp_path)) == program
    found = device_sanitizer.examine(program, "memcheck", ["host", "x"], environment={})
    assert isinstance(found, Check)
    assert found.passed
    words = device_sanitizer.command(program, "racecheck", ["host", "x"])
    assert words[1:3] == ["--tool", "racecheck"]
    assert words[-2:] == ["host", "x"]


def test_a_run_without_end_stays_unchecked(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "time.sleep(600)")
    found = device_sanitizer.examine(program, "memcheck", ["host"], environment={}, timeout_s=1.0)
    assert found == "compute-sanitizer memcheck: not run to its end within 1 s"
