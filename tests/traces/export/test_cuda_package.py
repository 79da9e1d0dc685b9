"""A CUDA winner as an installable operator: built by nvcc, called through a stand-in."""

from __future__ import annotations

import ctypes
import importlib
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
import triton

from kernelwright.errors import PrerequisiteError, UsageError
from kernelwright.sandbox.builders.cuda_library import build_library, read_architectures
from kernelwright.sandbox.builders.toolchain import find_nvcc
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.traces.export import Prebuilt, export, kernel_text

COMPILER = """#!/usr/bin/env python3
import subprocess, sys
open({log!r}, "w").write(" ".join(sys.argv[1:]))
command = ["g++", "-shared", "-fPIC", "-O1", {source!r}, "-o", sys.argv[-1]]
sys.exit(subprocess.run(command).returncode)
"""
LIBRARY = """
#include <cmath>
extern "C" long long softmax_scratch_bytes(long long M, long long N) {{ return 4 * M + 0 * N; }}
extern "C" int softmax_launch(long long M, long long N, const void* x, void* y, void* scratch,
                              void* stream) {{
  if (stream != (void*)77) return 400;
  for (long long i = 0; i < M; ++i) {{
    const float* row = (const float*)x + i * N;
    float top = -INFINITY, sum = 0;
    for (long long j = 0; j < N; ++j) top = std::fmax(top, row[j]);
    for (long long j = 0; j < N; ++j) sum += std::exp(row[j] - top);
    ((float*)scratch)[i] = sum;
    for (long long j = 0; j < N; ++j) ((float*)y)[i * N + j] = std::exp(row[j] - top) / sum;
  }}
  return {code};
}}
"""


@pytest.fixture
def exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ModuleType, ModuleType]]:
    """`_launch` and `_build` of a package, with CUDA's current stream 77 on the CPU's memory."""
    folder = tmp_path / "package"
    export(recipe_bundle("softmax", "cuda"), "package", folder, unverified=True)
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("KW_KERNEL_CACHE", str(cache))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(torch.cuda, "device_of", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=77))
    name = module_of(folder)
    yield (importlib.import_module(f"{name}._launch"), importlib.import_module(f"{name}._build"))
    for each in [each for each in sys.modules if each.split(".")[0] == name]:
        del sys.modules[each]


def stand_in(folder: Path, code: int = 0) -> tuple[Path, Path]:
    """A compiler that makes a library for the CPU, and where it writes its arguments."""
    source, log, path = folder / "library.cpp", folder / "arguments", folder / "compiler"
    source.write_text(LIBRARY.format(code=code))
    path.write_text(COMPILER.format(log=str(log), source=str(source)))
    path.chmod(0o755)
    return path, log


def test_its_files_say_what_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    export(recipe_bundle("spmm_csr", "cuda"), "package", folder, unverified=True)
    module = folder / module_of(folder)
    names = {path.name for path in module.iterdir()}
    assert {"kernel.cu", "_build.py", "_launch.py", "ops.py", "selftest.py"} <= names
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert "triton" not in str(project)
    assert "kernel.cu" in str(project["tool"]["setuptools"]["package-data"])
    mark = "emulated, never timed on a device"
    kinds = (".py", ".md", ".toml", ".json", ".cu")
    texts = [path for path in folder.rglob("*") if path.suffix in kinds]
    assert [path.name for path in texts if mark not in path.read_text()] == []
    for path in module.glob("*.py"):
        compile(path.read_text(), path.name, "exec")


def test_a_call_hands_sizes_memory_and_the_stream_over(
    exported: tuple[ModuleType, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, _ = exported
    compiler, log = stand_in(tmp_path)
    monkeypatch.setenv("NVCC", str(compiler))
    monkeypatch.setenv("KW_CUDA_ARCHS", "80;90a")
    x, y = torch.randn(5, 33), torch.empty(5, 33)
    launch.call((5, 33), (x,), (y,))
    torch.testing.assert_close(y, torch.softmax(x, 1))
    said = log.read_text()
    for each in ("arch=compute_80,code=sm_80", "code=sm_90a", "code=compute_90a", "kernel.cu"):
        assert each in said
    launch.call((0, 33), (x[:0],), (y[:0],))


def test_a_refused_launch_is_an_error_with_its_number(
    exported: tuple[ModuleType, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, build = exported
    monkeypatch.setenv("NVCC", str(stand_in(tmp_path, code=209)[0]))
    with pytest.raises(build.LaunchError, match="cudaError 209"):
        launch.call((1, 2), (torch.randn(1, 2),), (torch.empty(1, 2),))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NVCC", "/nowhere/nvcc", "install the CUDA toolkit"),
        ("KW_CUDA_ARCHS", "80;hopper", "'hopper' is none; write 80;90"),
    ],
)
def test_what_cannot_be_built_is_said_with_a_remedy(
    exported: tuple[ModuleType, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    said: str,
) -> None:
    _, build = exported
    monkeypatch.setenv("NVCC", str(stand_in(tmp_path)[0]))
    monkeypatch.setenv(name, value)
    with pytest.raises(build.KernelBuildError, match=said):
        build.library()


def prebuilt_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, architectures: tuple[str, ...]
) -> tuple[ModuleType, Path]:
    """`_build` of a package whose prebuilt library is the stand-in, and no compiler anywhere."""
    (tmp_path / "library.cpp").write_text(LIBRARY.format(code=0))
    command = ["g++", "-shared", "-fPIC", "library.cpp", "-o", "library.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    here = f"{sys.platform}-{platform.machine()}"
    content = (tmp_path / "library.so").read_bytes()
    made = Prebuilt(content, architectures, here, "13.0", ("-O3",))
    folder = tmp_path / "package"
    bundle = replace(recipe_bundle("softmax", "cuda"), prebuilt=made)
    export(bundle, "package", folder, unverified=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("NVCC", "/nowhere/nvcc")
    monkeypatch.setenv("KW_KERNEL_CACHE", str(tmp_path / "cache"))
    name = module_of(folder)
    for each in [each for each in sys.modules if each.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, each)
    return importlib.import_module(f"{name}._build"), folder / name


def see_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)


def test_a_prebuilt_library_is_called_where_no_compiler_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, module = prebuilt_package(tmp_path, monkeypatch, ("80", "90"))
    see_gpu(monkeypatch, (9, 0))
    x, y = torch.randn(5, 33), torch.empty(5, 33)
    build.launch((5, 33), (), (x, y), 77)
    torch.testing.assert_close(y, torch.softmax(x, 1))
    assert build.library() == module / "prebuilt.so"
    assert not (tmp_path / "cache").exists()
    told = json.loads((module / "prebuilt.json").read_text())
    assert (told["architectures"], told["ptx"], told["cuda"]) == (["80", "90"], "90", "13.0")
    assert "emulated, never timed" in told["caveat"]
    project = tomllib.loads((module.parent / "pyproject.toml").read_text())
    assert "prebuilt.so" in str(project["tool"]["setuptools"]["package-data"])


@pytest.mark.parametrize(
    ("architectures", "fits", "misfits"),
    [
        (("80",), [(8, 0), (8, 9), (9, 0), (12, 0)], [(7, 5)]),
        (("90", "80"), [(8, 0), (9, 0), (10, 0)], [(7, 0)]),
        (("90a",), [(9, 0)], [(8, 0), (9, 1), (10, 0)]),
        (("100f",), [(10, 0), (10, 3)], [(9, 0), (12, 0)]),
    ],
)
def test_a_library_is_for_gpus_that_it_has_code_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    architectures: tuple[str, ...],
    fits: list[tuple[int, int]],
    misfits: list[tuple[int, int]],
) -> None:
    build, module = prebuilt_package(tmp_path, monkeypatch, architectures)
    for capability in fits:
        see_gpu(monkeypatch, capability)
        assert build.library() == module / "prebuilt.so", capability
    for major, minor in misfits:
        see_gpu(monkeypatch, (major, minor))
        told = f"code for {', '.join(architectures)}, this GPU has {major}.{minor}; no CUDA"
        with pytest.raises(build.KernelBuildError, match=told):
            build.library()


def test_what_does_not_fit_is_compiled_and_what_was_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, module = prebuilt_package(tmp_path, monkeypatch, ("90",))
    told = json.loads((module / "prebuilt.json").read_text())
    monkeypatch.setenv("NVCC", str(stand_in(tmp_path)[0]))
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("KW_CUDA_ARCHS", "80")
    assert build.library().parent == tmp_path / "cache"
    monkeypatch.delenv("KW_CUDA_ARCHS")
    other = json.dumps({**told, "platform": "linux-sparc"})
    (module / "prebuilt.json").write_text(other)
    assert build.library().parent == tmp_path / "cache"
    (module / "prebuilt.json").write_text(json.dumps(told))
    assert build.library() == module / "prebuilt.so"
    with (module / "kernel.cu").open("a") as source:
        source.write("// edited\n")
    with pytest.raises(
        build.KernelBuildError, match=r"kernel\.cu is not what prebuilt\.json tells"
    ):
        build.library()


def test_without_a_gpu_the_command_says_so(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "package"
    export(recipe_bundle("softmax", "cuda"), "package", folder, unverified=True)
    done = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert done.returncode == 2, done.stderr
    assert "this kernel runs on a GPU" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["spmm_csr", "softmax"])
def test_nvcc_makes_code_for_two_architectures_and_ptx(
    tmp_path: Path, run: Run, problem: str
) -> None:
    try:
        nvcc = find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    folder = tmp_path / "package"
    export(recipe_bundle(problem, "cuda"), "package", folder, unverified=True)
    env = {"NVCC": str(nvcc.path), "KW_CUDA_ARCHS": "80;90"}
    done = run(sys.executable, "-m", module_of(folder), "build", path=folder, **env)
    assert done.returncode == 0, done.stderr
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    command = [str(tool), "-lelf", "-lptx", done.stdout.strip()]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"(sm_\d+)\.cubin", listed)) == {"sm_80", "sm_90"}, listed
    assert set(re.findall(r"(sm_\d+)\.ptx", listed)) == {"sm_90"}, listed


@pytest.mark.slow
def test_nvcc_prebuilds_for_two_architectures_in_a_jail(tmp_path: Path, run: Run) -> None:
    try:
        find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    bundle = recipe_bundle("softmax", "cuda")
    workshop = Workshop(choose(), Path())
    asked = read_architectures("80;sm_90")
    made = build_library(workshop, kernel_text(bundle), asked)
    told = Prebuilt(made.content, made.architectures, made.platform, made.cuda, made.flags)
    folder = tmp_path / "package"
    export(replace(bundle, prebuilt=told), "package", folder, unverified=True)
    done = run(sys.executable, "-m", module_of(folder), "build", path=folder, NVCC="/nowhere")
    assert done.returncode == 0, done.stderr
    library = Path(done.stdout.strip())
    assert library == folder / module_of(folder) / "prebuilt.so"
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    command = [str(tool), "-lelf", "-lptx", str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"(sm_\d+)\.cubin", listed)) == {"sm_80", "sm_90"}, listed
    assert set(re.findall(r"(sm_\d+)\.ptx", listed)) == {"sm_90"}, listed
    loaded = ctypes.CDLL(str(library))
    assert loaded.softmax_launch
    with pytest.raises(UsageError, match="nvcc makes no library for 11") as refused:
        build_library(workshop, kernel_text(bundle), ("11",))
    assert refused.value.hint


def test_one_without_a_plan_is_refused(tmp_path: Path) -> None:
    planless = replace(recipe_bundle("softmax", "cuda"), host=None)
    with pytest.raises(UsageError, match="no launch plan that could be written out") as refused:
        export(planless, "package", tmp_path / "out", unverified=True)
    assert refused.value.hint
    assert not (tmp_path / "out").exists()
