"""Which compiler is taken for a driver, where several are there or none will do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders import compatibility, toolchain

CACHED = (toolchain.find_nvrtc, toolchain.find_nvcc, compatibility._assemblers)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder of packages, and no toolkit of the system."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(toolchain, "_SYSTEM_HOME", tmp_path / "cuda")
    for find in CACHED:
        find.cache_clear()
    yield folder
    toolchain.prefer(None)
    for find in CACHED:
        find.cache_clear()


def nvrtc(root: Path, version: str, headers: Path | None = None) -> None:
    """NVRTC as wheels and toolkits lay it out."""
    (root / "lib").mkdir(parents=True)
    (root / "lib" / f"libnvrtc.so.{version.partition('.')[0]}").touch()
    (root / "lib" / f"libnvrtc-builtins.so.{version}").touch()
    include = (headers or root) / "include"
    include.mkdir(parents=True)
    (include / "cuda_fp16.h").touch()


def program(path: Path, says: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_an_older_driver_gets_the_older_compiler_with_its_own_headers(packages: Path) -> None:
    nvrtc(packages / "nvidia" / "cu13", "13.5")
    nvrtc(packages / "nvidia" / "cuda_nvrtc", "12.9", packages / "nvidia" / "cuda_runtime")
    assert toolchain.find_nvrtc().version == "13.5"
    assert toolchain.find_nvrtc(newest=13).version == "13.5"
    older = toolchain.find_nvrtc(newest=12)
    assert older.version == "12.9"
    assert older.includes == (packages / "nvidia" / "cuda_runtime" / "include",)
    assert compatibility.compiler_for("cuda", compatibility.major_of(12080)) == "NVRTC 12.9"


def test_an_older_toolkit_of_the_system_will_do(packages: Path, tmp_path: Path) -> None:
    nvrtc(packages / "nvidia" / "cu13", "13.5")
    nvrtc(tmp_path / "cuda-12.4", "12.4")
    assert toolchain.find_nvrtc(newest=12).version == "12.4"
    assert toolchain.find_nvrtc().version == "13.5"


def test_a_driver_that_no_compiler_is_for_is_told_with_two_remedies(packages: Path) -> None:
    nvrtc(packages / "nvidia" / "cu13", "13.5")
    with pytest.raises(PrerequisiteError, match=r"driver here is of CUDA 12.*NVRTC 13\.5") as told:
        compatibility.compiler_for("cuda", 12)
    assert "580" in told.value.hint
    assert "nvidia-cuda-nvrtc-cu12" in told.value.hint


def test_a_driver_that_tells_no_release_is_taken_as_it_is(packages: Path) -> None:
    nvrtc(packages / "nvidia" / "cu13", "13.5")
    assert compatibility.major_of(None) == toolchain.ANY_RELEASE
    assert compatibility.compiler_for("cuda", toolchain.ANY_RELEASE) == "NVRTC 13.5"


@pytest.mark.usefixtures("packages")
def test_nvcc_is_held_to_the_same_rule(tmp_path: Path) -> None:
    program(tmp_path / "home" / "bin" / "nvcc", "Build cuda_13.0.r13.0/compiler.1")
    toolchain.prefer(tmp_path / "home", "nvcc")
    assert "cuda_13.0" in compatibility.compiler_for("cuda", 13)
    with pytest.raises(PrerequisiteError, match=r"CUDA 12 and loads no code.*nvcc"):
        compatibility.compiler_for("cuda", 12)


def test_triton_is_given_the_assembler_that_the_driver_needs(packages: Path) -> None:
    programs = packages / "triton" / "backends" / "nvidia" / "bin"
    program(programs / "ptxas", "Cuda compilation tools, release 12.9, V12.9.86")
    program(programs / "ptxas-blackwell", "Cuda compilation tools, release 13.4, V13.4.59")
    assert (
        compatibility.triton_settings(toolchain.ANY_RELEASE)
        == compatibility.triton_settings(13)
        == {}
    )
    old = compatibility.triton_settings(12)
    assert set(old.values()) == {str(programs / "ptxas")}
    assert set(old) == {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"}
    assert compatibility.compiler_for("triton", 12) == "Triton's ptxas 12.9"
    with pytest.raises(PrerequisiteError, match=r"CUDA 11.*Triton's ptxas 12\.9"):
        compatibility.triton_settings(11)
