"""Every row of the table of causes speaks on the words that it is for, and on no other row's."""

from __future__ import annotations

import signal

import pytest

from kernelwright.benchmarks.contact.causes import LAST_LINES, TABLE, UNKNOWN, explain

WORDS = {
    "counters": "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
    "NVIDIA GPU Performance Counters on the target device 0.",
    "wheel": "ModuleNotFoundError: No module named 'pydantic'",
    "NVRTC": "error: NVIDIA's compiler NVRTC was not found (looked in no folder)",
    "driver too old": "the driver does not load what our compiler makes (see `kernelwright "
    "doctor`): CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "architecture": "RuntimeError: CUDA error: no kernel image is available for execution",
    "MIG": "an H100, sm_90; it is divided into MIG instances",
    "compute mode": "an H100 is in the compute mode exclusive process, and baselines are held "
    "against candidates in another process",
    "other processes": "SUSPECT: 2 other processes computed on the device",
    "clocks": "its clocks are held down by the power limit",
    "lost device": "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.",
    "memory of the device": "it asks for more than the device has: CUDA_ERROR_OUT_OF_MEMORY",
    "memory of the host": "OSError: [Errno 12] Cannot allocate memory",
    "no driver": "error: no NVIDIA GPU can be used here (NVML Shared Library Not Found)",
    "jail": "bwrap: No permissions to create new namespace",
    "compiler": "error: neither g++ nor clang++ is on the PATH",
    "stand-in": "the built artefact cannot be loaded: the cubin has no kernel finish",
    "no profiler": "Nsight Compute is not installed",
    "metric": "==ERROR== Failed to find metric dram__nothing.sum",
    "a kernel's fault": "its kernels failed: k: CUDA_ERROR_ILLEGAL_ADDRESS",
    "an expectation": "E   AssertionError: 3 cycles at first, 4 from the cache",
}


def test_every_row_has_words_and_every_word_a_row() -> None:
    assert list(WORDS) == [row.name for row in TABLE]


@pytest.mark.parametrize("name", WORDS)
def test_a_row_speaks_on_its_words(name: str) -> None:
    found = explain(f"collecting\n{WORDS[name]}\n", 1)
    assert found.name == name
    assert found.cause
    assert found.remedy
    assert found.last[-1] == WORDS[name]


def test_a_missing_package_is_named() -> None:
    assert explain(WORDS["wheel"], 1).cause == "a package is missing: pydantic"
    told = "importlib.metadata.PackageNotFoundError: No package metadata was found for torch"
    assert explain(told, 1).cause.endswith("torch")


def test_what_was_said_last_outvotes_what_came_before() -> None:
    said = "\n".join([WORDS["jail"], *["a line"] * LAST_LINES, WORDS["compute mode"]])
    assert explain(said, 1).name == "compute mode"
    assert explain("\n".join([WORDS["jail"], *["a line"] * LAST_LINES]), 1).name == "jail"


def test_late_is_late_whatever_was_said() -> None:
    found = explain(WORDS["no driver"], -signal.SIGKILL, is_late=True)
    assert found.name == "time"
    assert "--minutes-per-part" in found.remedy


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "memory was full"), (signal.SIGSEGV, "crashed")]
)
def test_a_signal_is_named_where_nothing_was_said(number: signal.Signals, words: str) -> None:
    found = explain("running\n", -number)
    assert found.name == f"signal {number.name}"
    assert words in found.cause


def test_what_no_row_knows_is_unknown_with_its_last_words() -> None:
    found = explain("\n".join(f"line {number}" for number in range(9)), 3)
    assert found.name == UNKNOWN
    assert found.last == [f"line {number}" for number in range(9 - LAST_LINES, 9)]


def test_a_passing_word_of_mig_is_no_cause() -> None:
    assert explain("MIG off, ECC on\nKeyError: 'x'", 1).name == UNKNOWN


def test_the_line_of_a_test_that_met_another_error_is_no_expectation() -> None:
    said = "    assert way.environment['X'] == device.uuid\nE   KeyError: 'X'"
    assert explain(said, 1).name == UNKNOWN
