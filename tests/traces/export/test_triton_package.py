"""A Triton winner as an installable operator: it runs by its plan, here in Triton's interpreter."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.traces.export import Bundle, export
from kernelwright.traces.records import candidate_id
from kernelwright.workbench.host_code import write_host_code

SPARSE = """
import torch, {module}
dense, b = torch.randn(6, 9).relu(), torch.randn(9, 5)
a = dense.to_sparse_csr()
assert a.col_indices().dtype is torch.int64
torch.testing.assert_close({module}.spmm_csr(a, b), dense @ b)
flat = (a.crow_indices(), a.col_indices(), a.values())
torch.testing.assert_close({module}.spmm_csr(*flat, b), dense @ b)
"""


def changed(bundle: Bundle, old: str, new: str) -> Bundle:
    """The candidate with another text, which its verdict is about."""
    source = bundle.source.replace(old, new)
    assert source != bundle.source
    candidate = candidate_id(source)
    return replace(
        bundle,
        source=source,
        candidate=candidate,
        verdict=bundle.verdict.model_copy(update={"candidate": candidate}),
        host=write_host_code("triton", source, bundle.problem),
    )


def selftest(bundle: Bundle, folder: Path, run: Run, **env: str) -> tuple[int, str]:
    export(bundle, "package", folder, unverified=True)
    done = run(sys.executable, "-m", module_of(folder), "selftest", path=folder, **env)
    return done.returncode, done.stdout + done.stderr


def test_its_files_say_what_it_is(tmp_path: Path) -> None:
    bundle = recipe_bundle("spmm_csr", "triton")
    folder = tmp_path / "package"
    export(bundle, "package", folder, unverified=True)
    module = folder / module_of(folder)
    names = {path.name for path in module.iterdir()}
    assert {"kernel.py", "_launch.py", "ops.py", "selftest.py", "record.json"} <= names
    assert not {"_build.py", "kernel.cpp"} & names
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert "triton>=3.0" in project["dependencies"]
    assert "verified" not in project["description"]
    texts = [path for path in folder.rglob("*") if path.suffix in (".py", ".md", ".toml", ".json")]
    mark = "emulated, never timed on a device"
    assert [path.name for path in texts if mark not in path.read_text()] == []
    for path in module.glob("*.py"):
        compile(path.read_text(), path.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["spmm_csr", "softmax"])
def test_its_self_test_passes_by_the_plan(tmp_path: Path, run: Run, problem: str) -> None:
    bundle = recipe_bundle(problem, "triton")
    code, said = selftest(bundle, tmp_path / "package", run, TRITON_INTERPRET="1")
    assert code == 0, said
    checks = 1 + 2 * len(bundle.cases)
    assert f"{checks} of {checks} checks passed" in said


@pytest.mark.slow
def test_it_takes_a_csr_tensor_with_int64_indices(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "package"
    export(recipe_bundle("spmm_csr", "triton"), "package", folder, unverified=True)
    program = SPARSE.format(module=module_of(folder))
    done = run(sys.executable, "-c", program, path=folder, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_wrong_kernel_fails_and_no_gpu_is_said(tmp_path: Path, run: Run) -> None:
    right = recipe_bundle("softmax", "triton")
    code, said = selftest(right, tmp_path / "right", run)
    assert code == 2, said
    assert "this kernel runs on a GPU" in said
    wrong = changed(right, "tl.exp", "tl.sin")
    code, said = selftest(wrong, tmp_path / "wrong", run, TRITON_INTERPRET="1")
    assert code == 1, said
    assert "FAIL  small: call" in said


def test_what_cannot_be_a_package_is_refused(tmp_path: Path) -> None:
    planless = replace(recipe_bundle("softmax", "triton"), host=None)
    for bundle, words in ((planless, "neither a launch plan"),):
        with pytest.raises(UsageError, match=words) as refused:
            export(bundle, "package", tmp_path / "out", unverified=True)
        assert refused.value.hint
    assert not (tmp_path / "out").exists()
