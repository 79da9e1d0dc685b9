"""A kernel as a header, a shared object and KernelBench's file: built by a stranger, and called."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError, UsageError
from kernelwright.kernelbench.recipes.catalogue import recipes_for
from kernelwright.sandbox.builders.toolchain import find_nvcc
from kernelwright.tests.sampling import IS_WHOLE
from kernelwright.tests.traces.export import kernels
from kernelwright.traces.export import Bundle, ModuleText, export
from kernelwright.traces.records import Status, candidate_id
from kernelwright.workbench.host_code import write_host_code

FORMS = ("header", "aot", "modelnew")


def recipe_bundle(problem: str, language: str, family: str = "") -> Bundle:
    """A recipe's kernel in place of the C++ one, with its host code."""
    of = {"spmm_csr": kernels.spmm, "softmax": kernels.softmax}[problem]()
    recipe = next(r for r in recipes_for(problem, language) if family in r.family)
    source = recipe.render(recipe.first_knobs())
    verdict = kernels.verdict(
        source, problem, Status.SCREENED, language=language, target="sm_90", emulated=True
    )
    return replace(
        of,
        source=source,
        candidate=candidate_id(source),
        language=language,
        verdict=verdict,
        host=write_host_code(language, source, problem),
    )


def pointers(bundle: Bundle, arrays: dict[str, np.ndarray]) -> list[Any]:
    return [arrays[t.name].ctypes.data_as(ctypes.c_void_p) for t in bundle.tensors]


def call_and_compare(library: Path, bundle: Bundle) -> None:
    """The recorded cases, through C alone."""
    entry = getattr(ctypes.CDLL(str(library)), bundle.entry)
    for case in bundle.cases:
        rows, columns = case.outputs["C"].shape[0], case.inputs["B"].shape[0]
        sizes = [rows, case.inputs["B"].shape[1], columns, len(case.inputs["values"])]
        found = np.full(case.outputs["C"].shape, np.nan, np.float32)
        entry(*map(ctypes.c_int, sizes), *pointers(bundle, {**case.inputs, "C": found}))
        assert (abs(found - case.outputs["C"]) <= case.tolerances["C"]).all()


def test_make_builds_a_library_with_a_c_abi(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    folder = tmp_path / "aot"
    export(bundle, "aot", folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    call_and_compare(folder / "libspmm_csr.so", bundle)
    program = '#include "spmm_csr.h"\nint main(void) { return spmm_csr == 0; }\n'
    (tmp_path / "main.c").write_text(program)
    linked = ["gcc", "-Wall", "-Werror", "-Wno-address", f"-I{folder}", "main.c"]
    linked += [str(folder / "libspmm_csr.so"), "-o", "main"]
    subprocess.run(linked, cwd=tmp_path, check=True)


def test_a_header_stands_in_a_users_own_file(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    export(bundle, "header", tmp_path / "header")
    (tmp_path / "mine.cpp").write_text('#include "header/spmm_csr.hpp"\n')
    command = ["g++", *bundle.flags, "mine.cpp", "-o", "libmine.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    call_and_compare(tmp_path / "libmine.so", bundle)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["header", "aot"])
@pytest.mark.parametrize("problem", ["spmm_csr", "softmax"])
def test_cuda_is_compiled_by_nvcc(tmp_path: Path, problem: str, form: str) -> None:
    try:
        nvcc = find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    bundle = recipe_bundle(problem, "cuda")
    folder = tmp_path / form
    export(bundle, form, folder, unverified=True)
    env = {**os.environ, "PATH": f"{nvcc.path.parent}:{os.environ['PATH']}"}
    if form == "aot":
        subprocess.run(["make", "-s", "ARCH=sm_90"], cwd=folder, env=env, check=True)
        library = ctypes.CDLL(str(folder / f"lib{problem}.so"))
        room = getattr(library, f"{problem}_scratch_bytes")
        room.restype = ctypes.c_longlong
        counted = len(bundle.axes)
        features = [ctypes.c_double(4.0)] * len(bundle.host.features if bundle.host else ())
        assert room(*[ctypes.c_longlong(64)] * counted, *features) >= 0
        assert getattr(library, f"{problem}_launch")
        return
    (tmp_path / "mine.cu").write_text(
        f'#include "{form}/{problem}.cuh"\nint main() {{ return 0; }}\n'
    )
    subprocess.run(
        [nvcc.path, "-std=c++17", "-arch=sm_90", "-c", "mine.cu", "-o", "mine.o"],
        cwd=tmp_path,
        env=env,
        check=True,
    )


CALLS = """
import sys
import numpy as np
import torch
sys.path.insert(0, sys.argv[1])
import {module} as exported
cases = np.load(sys.argv[2])
names = sorted(name for name in cases.files if name.startswith("in_"))
given = [torch.from_numpy(cases[name]) for name in names]
found = exported.ModelNew{built}(*given).numpy()
assert (abs(found - cases["out"]) <= cases["tolerance"]).all(), abs(found - cases["out"]).max()
"""


def run_modelnew(
    bundle: Bundle, folder: Path, built: str = "()", **env: str
) -> subprocess.CompletedProcess[str]:
    """The first case through the exported class, in a process that knows nothing of us."""
    case, out = bundle.cases[0], bundle.outputs[0].name
    arrays = {f"in_{at}": case.inputs[t.name] for at, t in enumerate(bundle.inputs)}
    np.savez(folder / "case.npz", **arrays, out=case.outputs[out], tolerance=case.tolerances[out])
    (folder / "call.py").write_text(CALLS.format(module=bundle.problem, built=built))
    return subprocess.run(
        [sys.executable, "-I", "call.py", str(folder / "modelnew"), "case.npz"],
        cwd=folder,
        env={**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "extensions"), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not IS_WHOLE, reason="minutes of torch's headers: make test-all")
@pytest.mark.skipif(shutil.which("ninja") is None, reason="load_inline needs ninja")
def test_kernelbenchs_file_of_a_cpp_kernel_is_right(tmp_path: Path) -> None:
    bundle = kernels.spmm()
    export(bundle, "modelnew", tmp_path / "modelnew")
    ran = run_modelnew(bundle, tmp_path)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["spmm_csr", "softmax"])
def test_kernelbenchs_file_of_a_triton_kernel_is_right(tmp_path: Path, problem: str) -> None:
    bundle = recipe_bundle(problem, "triton")
    export(bundle, "modelnew", tmp_path / "modelnew", unverified=True)
    text = (tmp_path / "modelnew" / f"{problem}.py").read_text()
    assert text.startswith("# emulated, never timed on a device")
    # What KernelBench's own check refuses.
    assert "try:" not in text
    assert "\n    pass" not in text
    ran = run_modelnew(bundle, tmp_path, TRITON_INTERPRET="1")
    assert ran.returncode == 0, ran.stderr


MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(width, width))

    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.rand(6, 11)]

def get_init_inputs():
    return [11]
"""


def test_a_modules_class_keeps_its_constructor_and_its_parameters(tmp_path: Path) -> None:
    source = """import torch

def run(M, N, x, y):
    y.copy_(torch.softmax(x, dim=1))
"""
    named = ModuleText(MODULE, {"weight": "inner.0.weight"})
    bundle = replace(
        kernels.softmax(),
        source=source,
        candidate=candidate_id(source),
        language="python",
        verdict=kernels.verdict(source, "softmax", language="python"),
        module=named,
    )
    export(bundle, "modelnew", tmp_path / "modelnew")
    text = (tmp_path / "modelnew" / "softmax.py").read_text()
    assert "class ModelNew(Model):" in text
    assert 'weight = operator.attrgetter("inner.0.weight")(self)' in text
    ran = run_modelnew(bundle, tmp_path, built="(11)")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("form", FORMS)
def test_what_has_no_place_in_it_is_refused(tmp_path: Path, form: str) -> None:
    prepared = replace(kernels.spmm(), is_prepared=True)
    with pytest.raises(UsageError, match="makes a plan of its pattern"):
        export(prepared, form, tmp_path / "out")
    planless = replace(recipe_bundle("softmax", "cuda"), host=None)
    with pytest.raises(UsageError, match="no launch plan that could be written out"):
        export(planless, form, tmp_path / "out", unverified=True)
    assert not (tmp_path / "out").exists()
