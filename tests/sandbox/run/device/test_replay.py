"""A candidate's call as a program of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.builders.model import Built, DeviceBuilt, KernelFacts
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.plan.model import Argument, ArgumentKind, Launch, Launches
from kernelwright.sandbox.run.device.device_files import DeviceFiles
from kernelwright.sandbox.run.device.program import KERNEL_FAILED, WROTE_INPUT
from kernelwright.sandbox.run.device.replay import PlacedCall, host_command

pytestmark = pytest.mark.jail

if TYPE_CHECKING:
    from .conftest import Stage


def played(
    stage: Stage, access: DeviceFiles, folder: Path, cache: Path, kernel: str, **more: bool
) -> subprocess.CompletedProcess[str]:
    tensors = tuple(Argument(ArgumentKind.TENSOR, i) for i in range(2))
    stage.place(0, Launches((kernel,), (Launch(0, arguments=tensors),)))
    facts = KernelFacts(kernel, kernel, 32, 0, 0, 0, 0, (8, 8))
    built = DeviceBuilt("sm_90a", (Built(b"FAKE", "0" * 64, 0.1),), (facts,))
    call = PlacedCall(*stage.memory())
    command = host_command(
        Workshop(BareJail(), cache),
        folder,
        built,
        registry.get("softmax"),
        call,
        access,
        calls=3,
        **more,
    )
    return subprocess.run(
        command, env=access.environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("is_separate", [False, True])
@pytest.mark.parametrize(
    ("kernel", "code"),
    [("copy_first", 0), ("writes_input", WROTE_INPUT), ("wrong_address", KERNEL_FAILED)],
)
def test_it_plays_the_call_and_tells_by_its_exit(
    stage: Stage,
    access_to: Callable[..., DeviceFiles],
    tmp_path: Path,
    cache: Path,
    kernel: str,
    code: int,
    is_separate: bool,
) -> None:
    done = played(stage, access_to(), tmp_path, cache, kernel, is_separate=is_separate)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""


def test_for_a_sanitizer_outputs_are_never_written_by_us(
    stage: Stage, access_to: Callable[..., DeviceFiles], tmp_path: Path, cache: Path
) -> None:
    # The fake driver fills fresh memory with 0x11, and a mere copy of y would be another value.
    done = played(stage, access_to(), tmp_path, cache, "y_is_fresh", is_separate=True)
    assert done.returncode == 0, done.stderr
    done = played(stage, access_to(), tmp_path, cache, "y_is_fresh", is_separate=False)
    assert done.returncode == KERNEL_FAILED


def test_without_a_device_it_says_so(
    stage: Stage, access_to: Callable[..., DeviceFiles], tmp_path: Path, cache: Path
) -> None:
    done = played(stage, access_to("no_device"), tmp_path, cache, "copy_first")
    assert done.returncode == 97
    assert "CUDA_ERROR_NO_DEVICE" in done.stderr
