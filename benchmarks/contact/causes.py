"""Why something probably failed, and what would help: one table, from what was said at the end.

A row is tried after the ones above it. What no row knows is said to be unknown, with its last
words: a wrong cause costs more than none.
"""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

LAST_LINES = 5
LONGEST = 300


class Row(NamedTuple):
    """What is looked for in the words, what it means, what helps."""

    name: str
    pattern: str
    cause: str
    remedy: str


class Cause(NamedTuple):
    """The probable cause of one failure."""

    name: str
    cause: str
    remedy: str
    last: list[str]
    """What was said last."""


UNKNOWN = "unknown"
TABLE = (
    Row(
        "counters",
        r"ERR_NVGPUCTRPERM|counters are for administrators",
        "the driver keeps performance counters to administrators",
        "run as root or with CAP_SYS_ADMIN, or load the driver with "
        "NVreg_RestrictProfilingToAdminUsers=0",
    ),
    Row(
        "wheel",
        r"No module named '?(?P<it>[\w.]+)|No package metadata was found for (?P<also>[\w-]+)"
        r"|nvidia-ml-py is not installed",
        "a package is missing: {it}",
        "carry its wheel along: the list is said before anything is begun",
    ),
    Row(
        "NVRTC",
        r"NVRTC was not found|libnvrtc[\w.]*: cannot open",
        "NVIDIA's compiler NVRTC is not here",
        "carry nvidia-cuda-nvrtc and nvidia-cuda-runtime along, or name a toolkit by CUDA_HOME",
    ),
    Row(
        "driver too old",
        r"loads no code of a later major|driver version is insufficient|INSUFFICIENT_DRIVER"
        r"|CUDA_ERROR_INVALID_IMAGE|UNSUPPORTED_PTX_VERSION",
        "the driver is older than the compiler that built the code",
        "carry the wheels of the driver's own release along (nvidia-cuda-nvrtc-cu12 and "
        "nvidia-cuda-runtime-cu12 for CUDA 12), or update the driver",
    ),
    Row(
        "architecture",
        r"NO_BINARY_FOR_GPU|no kernel image is available|kernels cannot be built for it",
        "the code was not built for this architecture",
        "use a torch and a target that know the device (`kernelwright doctor`)",
    ),
    Row(
        "MIG",
        r"divided into MIG|MIG instance|\bMIG\b[^\n]*not supported",
        "the device is divided into MIG instances, and is not to be had whole",
        "ask for a whole device; an administrator can undo it (nvidia-smi -mig 0)",
    ),
    Row(
        "compute mode",
        r"in the compute mode|exclusive[_ ](?:process|thread)|CUDA_ERROR_DEVICE_UNAVAILABLE"
        r"|devices? (?:is|are) busy or unavailable",
        "the device admits one process at a time",
        "an administrator can change it: nvidia-smi -c DEFAULT",
    ),
    Row(
        "other processes",
        r"other process(?:es)? computed on the device|no device is free|another profiler uses",
        "another process uses the device",
        "end it (nvidia-smi lists them), or wait until the device is free",
    ),
    Row(
        "clocks",
        r"clocks (?:are|were) held down|clock fell from",
        "the device's clocks are not at their highest",
        "let it cool down, or ask for its power limit; until then times are SUSPECT",
    ),
    Row(
        "lost device",
        r"\bXid\b|GPU is lost|fallen off the bus|ECC_UNCORRECTABLE|in quarantine|ECC error",
        "the device is ill or was lost",
        "look into `dmesg` for Xid, and give the device back: only its administrator can reset it",
    ),
    Row(
        "memory of the device",
        r"CUDA_ERROR_OUT_OF_MEMORY|CUDA out of memory|more than the device has",
        "the device's memory is full",
        "end what else is on the device, or choose smaller problems",
    ),
    Row(
        "memory of the host",
        r"MemoryError|Cannot allocate memory|oom-kill",
        "the machine's memory is full",
        "give the container more memory",
    ),
    Row(
        "no driver",
        r"no NVIDIA GPU can be used|libcuda\.so\.1 is not on this machine|CUDA_ERROR_NO_DEVICE"
        r"|driver shows no device|NVML Shared Library|nvidia-uvm is missing|Driver Not Loaded",
        "there is no driver, or the container was not given the device",
        "install NVIDIA's driver, or start the container with the device (docker --gpus all)",
    ),
    Row(
        "jail",
        r"no (?:sandbox|jail) works|bwrap: |does not enforce|CUDA_ERROR_OPERATING_SYSTEM",
        "no jail confines here: bubblewrap, user namespaces or Landlock are missing",
        "install bubblewrap, allow user namespaces; or KERNELWRIGHT_JAIL=bare goes without a jail",
    ),
    Row(
        "compiler",
        r"neither g\+\+ nor clang\+\+|no C\+\+ compiler|the runner does not compile",
        "there is no C++ compiler that builds our runner",
        "install g++",
    ),
    Row(
        "stand-in",
        r"the cubin has no kernel",
        "the driver has no kernel of this name; a stand-in driver has a few host functions only",
        "on a stand-in nothing; on a device look at the names in the launch plan",
    ),
    Row(
        "no profiler",
        r"Nsight Compute is not installed|compute-sanitizer: not installed",
        "NVIDIA's tool is not on the PATH and in no toolkit",
        "install nsight-compute or cuda-sanitizer, or put the toolkit's tools on the PATH",
    ),
    Row(
        "metric",
        r"does not know the metric|Failed to find metric",
        "this release of Nsight Compute has no metric of that name",
        "use another release, or name the metric's successor in metrics.toml",
    ),
    Row(
        "a kernel's fault",
        r"CUDA_ERROR_(?:ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|LAUNCH_FAILED)",
        "a kernel of ours reached memory that is not its own",
        "run the kernel that was named under compute-sanitizer",
    ),
    Row(
        "an expectation",
        r"(?m)^E\s+(?:AssertionError|assert |Failed: DID NOT RAISE)|^AssertionError",
        "what was measured is not what the test expects of a device",
        "read the figures in the last lines: the test's bound, or our code, is wrong here",
    ),
)
LATE = Row("time", "", "it took longer than it was given", "give more --minutes-per-part")
SIGNALS = {
    signal.SIGKILL: "it was killed from outside, most likely since the machine's memory was full",
    signal.SIGSEGV: "it crashed (a library reached memory that is not its own)",
    signal.SIGBUS: "it crashed: the folder of shared memory (/dev/shm) may be full",
    signal.SIGTERM: "somebody asked it to end",
}


def explain(said: str, status: int = 0, *, is_late: bool = False) -> Cause:
    """The probable cause of a failure.

    Args:
        status: Of the process: negative where a signal ended it.
        is_late: It was ended by us, since its time was over.
    """
    last = [line.rstrip()[:LONGEST] for line in said.splitlines() if line.strip()][-LAST_LINES:]
    if is_late:
        return Cause(LATE.name, LATE.cause, LATE.remedy, last)
    # What was said last is nearest to the end: a word of the beginning may be long overcome.
    for text in ("\n".join(last), said):
        for row in TABLE:
            if found := re.search(row.pattern, text):
                it = next((word for word in found.groupdict().values() if word), found[0])
                return Cause(row.name, row.cause.format(it=it), row.remedy, last)
    if status < 0:
        name = signal.Signals(-status).name
        words = SIGNALS.get(signal.Signals(-status), "a signal ended it")
        return Cause(f"signal {name}", words, "look into `dmesg`", last)
    return Cause(UNKNOWN, "not known to us", "read its last words", last)
