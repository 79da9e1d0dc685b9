"""Which toolkit is used where several are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.verifier.profile import nsight
from kernelwright.verifier.stands import device_sanitizer

SOURCE = 'extern "C" __global__ void k(float* y) { y[threadIdx.x] = 1; }'


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    toolchain.prefer(None)


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_a_preferred_toolkit_goes_first_and_what_it_lacks_is_found_elsewhere(
    tmp_path: Path,
) -> None:
    nvcc = program(tmp_path / "bin" / "nvcc", "Build cuda_99.0")
    try:
        elsewhere = toolchain.find_nvrtc()
    except PrerequisiteError:
        elsewhere = None
    toolchain.prefer(tmp_path)
    assert toolchain.find_nvcc().path == nvcc.resolve()
    assert toolchain.find_nvcc().version == "Build cuda_99.0"
    if elsewhere is not None:
        assert toolchain.find_nvrtc().library == elsewhere.library
    toolchain.prefer(None)
    with pytest.raises(PrerequisiteError):
        toolchain.find_nvcc(tmp_path / "lib")


def test_its_profilers_go_first_too(tmp_path: Path) -> None:
    ncu = program(tmp_path / "bin" / "ncu", "Version 2099.1.0")
    sanitizer = program(tmp_path / "bin" / "compute-sanitizer", "")
    toolchain.prefer(tmp_path)
    found = nsight.find_ncu()
    assert found is not None
    assert (found.path, found.version) == (ncu, "2099.1.0")
    assert device_sanitizer.find() == sanitizer


def test_what_is_not_there_is_told_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no-such-folder is not there") as told:
        toolchain.prefer(tmp_path / "no-such-folder")
    assert "CUDA_HOME" in told.value.hint


def test_an_nvcc_that_does_not_answer_is_passed_over(tmp_path: Path) -> None:
    nvcc = program(tmp_path / "bin" / "nvcc", "")
    nvcc.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(PrerequisiteError, match="nvcc was asked for") as told:
        toolchain.find_nvcc(tmp_path)
    assert "CUDA_HOME" in told.value.hint


@pytest.mark.slow
def test_the_preferred_compiler_builds(tmp_path: Path) -> None:
    try:
        toolchain.prefer(None, "nvcc")
    except PrerequisiteError as error:
        pytest.skip(str(error))
    made = build(Workshop(BareJail(), tmp_path), SOURCE, ("k",), architecture("sm_90"))
    assert isinstance(made, DeviceBuilt)
    assert made.cubins[0].compiler == toolchain.find_nvcc().version
