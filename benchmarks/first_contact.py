"""What to run first on a machine with an NVIDIA GPU: doctor, the GPU tests, some of the GPU bench.

python benchmarks/first_contact.py [--minutes 10] [--log FILE]

Everything that is said goes into the log (first-contact.log unless told otherwise), a summary to
the terminal. A step that takes too long is ended, and the next one goes on; the last has what time
the others left. Status: 0 where all steps were well, 1 where one was not, 3 without a device.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from kernelwright.errors import ExitCode, PrerequisiteError
from kernelwright.sandbox.run.device import nvml

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
LAST_LINES = 3
WELL = "well"


class Step(NamedTuple):
    """One program, and the share of the time that it may take."""

    name: str
    command: list[str]
    share: float


STEPS = (
    Step("doctor", [PYTHON, "-m", "kernelwright", "doctor", "--require", "gpu"], 0.1),
    Step("tests", [PYTHON, "-m", "pytest", "-q", "-ra", "tests/gpu"], 0.5),
    Step(
        "bench",
        [
            PYTHON,
            "benchmarks/gpu_results.py",
            "--seconds",
            "20",
            "--out",
            "first-contact.md",
            "spmm_csr",
            "softmax",
            "gemm",
        ],
        0.4,
    ),
)


class Done(NamedTuple):
    """How a step ended."""

    name: str
    how: str
    seconds: float
    last: list[str]
    """What it said last."""


def device_here() -> str:
    """The first device's name and driver. Raises PrerequisiteError where there is none."""
    with nvml.open_nvml() as module:
        found = nvml.devices(module)
    if not found:
        raise PrerequisiteError("the driver shows no device")
    return f"{found[0].name} ({found[0].architecture}), driver {found[0].driver}"


def done(step: Step, log: TextIO, timeout_s: float) -> Done:
    """Runs a step, with what it says in the log."""
    started = time.monotonic()
    print(f"\n===== {step.name}: {' '.join(step.command)}", file=log, flush=True)
    begin = log.tell()
    environment = {**os.environ, "TEST_REQUIRE_GPU": "1", "TEST_ALL": "1"}
    if os.environ.get("KERNELWRIGHT_JAIL") == "bare":
        # Who asks for no jail has accepted it; every step says so.
        environment["KERNELWRIGHT_ACCEPT_WEAK_ISOLATION"] = "true"
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout_s)
        how = WELL if code == 0 else f"status {code}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        how = f"ended after {timeout_s:.0f} s"
    said = Path(log.name).read_bytes()[begin:].decode(errors="replace").splitlines()
    return Done(step.name, how, time.monotonic() - started, said[-LAST_LINES:])


def summary(device: str, steps: list[Done], log: Path) -> str:
    """For the terminal, and the end of the log."""
    lines = [f"first contact with {device}"]
    for step in steps:
        lines.append(f"  {step.name:8} {step.how:20} {step.seconds:5.0f} s")
        lines += [f"           {line[:160]}" for line in step.last]
    return "\n".join([*lines, f"all that was said: {log}"])


def run(device: str, steps: Sequence[Step], minutes: float, log_at: Path) -> int:
    """The steps in order; the exit status."""
    with log_at.open("w") as log:
        ends = time.monotonic() + 60 * minutes
        found = []
        for step in steps:
            is_last = step is steps[-1]
            left = ends - time.monotonic()
            found.append(done(step, log, left if is_last else min(left, 60 * minutes * step.share)))
        told = summary(device, found, log_at)
        print(f"\n{told}", file=log)
    print(told)
    return 0 if all(step.how == WELL for step in found) else 1


def main() -> int:
    """Looks for a device and runs the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--log", type=Path, default=Path("first-contact.log"))
    asked = parser.parse_args()
    try:
        device = device_here()
    except PrerequisiteError as error:
        print(f"nothing was tried: {error}", file=sys.stderr)
        return int(ExitCode.PREREQUISITE)
    return run(device, STEPS, asked.minutes, asked.log)


if __name__ == "__main__":
    sys.exit(main())
