"""A winner as a repository of Hugging Face's kernels: of the right form, and it computes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch.utils.cpp_extension import include_paths, library_paths

from kernelwright.errors import PrerequisiteError, UsageError
from kernelwright.sandbox.builders.toolchain import find_nvcc
from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.traces.export import Bundle, export
from kernelwright.traces.records import candidate_id

BUILDERS_OPS = """
import torch
{found}
def add_op_namespace_prefix(name):
    return "_exported_of_tests::" + name
"""
"""What kernel-builder writes beside the Python files."""
REGISTRATION = """
#pragma once
#include <Python.h>
#define KW_LIBRARY(NAME, LIBRARY) TORCH_LIBRARY(NAME, LIBRARY)
#define TORCH_LIBRARY_EXPAND(NAME, LIBRARY) KW_LIBRARY(NAME, LIBRARY)
#define KW_INIT(NAME) PyInit_##NAME
#define KW_INIT_OF(NAME) KW_INIT(NAME)
#define REGISTER_EXTENSION(NAME) \\
  PyMODINIT_FUNC KW_INIT_OF(NAME)() { \\
    static PyModuleDef module = {PyModuleDef_HEAD_INIT, "exported", nullptr, 0, nullptr}; \\
    return PyModule_Create(&module); \\
  }
"""
CALLS = """
import sys
import numpy as np
import torch
import {module} as exported
function = exported.{operator}
cases = np.load(sys.argv[1])
given = [torch.from_numpy(cases[f"in_{{at}}"]) for at in range({inputs})]
wanted, tolerance = cases["out"], cases["tolerance"]
def compare(found):
    assert (abs(found.numpy() - wanted) <= tolerance).all(), abs(found.numpy() - wanted).max()
compare(function(*given))
out = torch.full(wanted.shape, torch.nan)
assert function(*given, out=out) is out
compare(out)
traced = torch.compile(function, backend="aot_eager", fullgraph=True)
compare(traced(*given))
for wrong in (given[-1].double(), given[-1].t()):
    try:
        function(*given[:-1], wrong)
    except ValueError as error:
        print(error)
    else:
        raise AssertionError(wrong)
"""
PYTHON = """import torch

def run(M, N, x, y):
    y.copy_(torch.softmax(x, dim=1))
"""


def python_bundle(source: str = PYTHON) -> Bundle:
    return replace(
        kernels.softmax(),
        source=source,
        candidate=candidate_id(source),
        language="python",
        verdict=kernels.verdict(source, "softmax", language="python"),
    )


BUNDLES = {
    "cpp": kernels.spmm,
    "cuda": lambda: recipe_bundle("spmm_csr", "cuda"),
    "triton": lambda: recipe_bundle("spmm_csr", "triton"),
    "python": python_bundle,
}


def package_of(folder: Path) -> Path:
    return next(each for each in (folder / "torch-ext").iterdir() if each.is_dir())


@pytest.mark.parametrize("language", BUNDLES)
def test_every_language_has_the_files_that_build_toml_names(tmp_path: Path, language: str) -> None:
    bundle = BUNDLES[language]()
    folder = tmp_path / "hub"
    export(bundle, "kernels-hub", folder, unverified=True)
    build = tomllib.loads((folder / "build.toml").read_text())
    general, package = build["general"], package_of(folder)
    assert re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", general["name"])
    assert package.name == general["name"].replace("-", "_")
    assert (general["edition"], general["version"]) == (5, 1)
    assert general["backends"] == [{"cpp": "cpu", "python": "cpu"}.get(language, "cuda")]
    assert set(general) == {"name", "version", "edition", "license", "backends"}
    assert ("torch-noarch" in build) == (language in ("triton", "python"))
    named = build.get("torch", {}).get("src", [])
    for kernel in build.get("kernel", {}).values():
        assert kernel["backend"] in general["backends"]
        named = [*named, *kernel["src"]]
        assert kernel.get("cuda-capabilities", ["9.0"]) == ["9.0"]
        assert not {"-march=native", "-shared"} & set(kernel.get("cxx-flags", []))
    assert [name for name in named if not (folder / name).is_file()] == []
    assert {"__init__.py", "ops.py"} <= {path.name for path in package.iterdir()}
    for path in package.glob("*.py"):
        compile(path.read_text(), path.name, "exec")
    if bundle.caveat:
        unmarked = [p.name for p in folder.rglob("*") if p.is_file() and not is_marked(p)]
        assert unmarked == []


def is_marked(path: Path) -> bool:
    return "emulated, never timed on a device" in path.read_text()


@pytest.mark.parametrize("language", BUNDLES)
def test_hugging_faces_own_reader_takes_build_toml(tmp_path: Path, language: str) -> None:
    if importlib.util.find_spec("kernels") is None:
        pytest.skip("the package kernels of Hugging Face is not installed")
    from kernels._rust import Build

    export(BUNDLES[language](), "kernels-hub", tmp_path / "hub", unverified=True)
    assert len(Build.open(tmp_path / "hub").general.backends) == 1
    toml = tmp_path / "hub" / "build.toml"
    toml.write_text(toml.read_text().replace("edition = 5", "edition = 5\nfoo = 1"))
    with pytest.raises(ValueError, match="foo"):
        Build.open(tmp_path / "hub")


def call_exported(
    bundle: Bundle, folder: Path, found: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """The first case through the repository's Python package, beside what the builder adds."""
    package, case, out = package_of(folder), bundle.cases[0], bundle.outputs[0].name
    (package / "_ops.py").write_text(BUILDERS_OPS.format(found=found))
    arrays = {f"in_{at}": case.inputs[t.name] for at, t in enumerate(bundle.inputs)}
    stored = folder.parent / "case.npz"
    np.savez(stored, **arrays, out=case.outputs[out], tolerance=case.tolerances[out])
    text = CALLS.format(module=package.name, operator=bundle.problem, inputs=len(bundle.inputs))
    return subprocess.run(
        [sys.executable, "-c", text, str(stored)],
        env={**os.environ, "PYTHONPATH": str(package.parent), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_kernel_is_called_and_its_inputs_are_checked(tmp_path: Path) -> None:
    bundle = python_bundle()
    export(bundle, "kernels-hub", tmp_path / "hub")
    ran = call_exported(bundle, tmp_path / "hub")
    assert ran.returncode == 0, ran.stderr
    assert "x has dtype torch.float64" in ran.stdout
    assert "x is not contiguous" in ran.stdout


@pytest.mark.slow
def test_a_wrong_kernel_is_found_so(tmp_path: Path) -> None:
    wrong = python_bundle(PYTHON.replace("dim=1", "dim=0"))
    export(wrong, "kernels-hub", tmp_path / "wrong")
    assert "AssertionError" in call_exported(wrong, tmp_path / "wrong").stderr


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["spmm_csr", "softmax"])
def test_a_triton_kernel_is_launched_as_its_plan_says(tmp_path: Path, problem: str) -> None:
    bundle = recipe_bundle(problem, "triton")
    export(bundle, "kernels-hub", tmp_path / "hub", unverified=True)
    ran = call_exported(bundle, tmp_path / "hub", TRITON_INTERPRET="1")
    assert ran.returncode == 0, ran.stderr
    ran = call_exported(bundle, tmp_path / "hub", TRITON_INTERPRET="0")
    assert "this kernel runs on a GPU" in ran.stderr


def compile_binding(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """torch_binding.cpp against torch's own headers, which takes seconds."""
    (folder / "registration.h").write_text(REGISTRATION)
    places = [*include_paths(), sysconfig.get_paths()["include"], str(folder)]
    name = f"-DTORCH_EXTENSION_NAME={package_of(folder).name}_ops"
    command = ["g++", "-std=c++20", "-O1", "-fPIC", name, *(f"-I{each}" for each in places)]
    command += ["torch-ext/torch_binding.cpp", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_cpp_kernel_is_built_with_its_binding_and_called(tmp_path: Path) -> None:
    bundle, folder = kernels.spmm(), tmp_path / "hub"
    export(bundle, "kernels-hub", folder)
    [kernel] = tomllib.loads((folder / "build.toml").read_text())["kernel"].values()
    flags = [*kernel["cxx-flags"], "-fPIC", "-c", *kernel["src"], "-o", "kernel.o"]
    subprocess.run(["g++", *flags], cwd=folder, check=True)
    library = folder / "exported.so"
    more = ["kernel.o", "-fopenmp", "-shared", *(f"-L{each}" for each in library_paths())]
    more += ["-lc10", "-ltorch_cpu", "-o", str(library)]
    done = compile_binding(folder, *more)
    assert done.returncode == 0, done.stderr
    name = f"{package_of(folder).name}_ops"
    ran = call_exported(
        bundle, folder, f"torch.ops.load_library({str(library)!r})\nops = torch.ops.{name}"
    )
    assert ran.returncode == 0, ran.stderr
    assert "B is not contiguous" in ran.stdout


@pytest.mark.slow
def test_a_cuda_kernel_is_compiled_by_nvcc(tmp_path: Path) -> None:
    try:
        nvcc = find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    folder = tmp_path / "hub"
    export(recipe_bundle("spmm_csr", "cuda"), "kernels-hub", folder, unverified=True)
    [kernel] = tomllib.loads((folder / "build.toml").read_text())["kernel"].values()
    command = [nvcc.path, *kernel["cuda-flags"], "-arch=sm_90", "-c", *kernel["src"], "-o", "k.o"]
    env = {**os.environ, "PATH": f"{nvcc.path.parent}:{os.environ['PATH']}"}
    subprocess.run(command, cwd=folder, env=env, check=True)
    found = subprocess.run(["nm", "k.o"], cwd=folder, capture_output=True, text=True, check=True)
    header = (folder / "torch-ext" / "torch_binding.h").read_text()
    for name in re.findall(r"spmm_csr_\w+(?=\()", header):
        assert f" T {name}\n" in found.stdout


def test_what_has_no_place_in_it_is_refused(tmp_path: Path) -> None:
    prepared = replace(kernels.spmm(), is_prepared=True)
    planless = replace(recipe_bundle("softmax", "cuda"), host=None)
    whole = python_bundle("class ModelNew:\n    pass\n")
    for bundle, words in (
        (prepared, "makes a plan of its pattern"),
        (planless, "no launch plan that could be written out"),
        (whole, "neither a launch plan that could be written out nor a function run"),
    ):
        with pytest.raises(UsageError, match=words) as refused:
            export(bundle, "kernels-hub", tmp_path / "out", unverified=True)
        assert refused.value.hint
    assert not (tmp_path / "out").exists()
