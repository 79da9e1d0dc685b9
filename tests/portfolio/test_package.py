"""A dispatcher leaves as one package, whose self-test goes through every kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.portfolio.dispatcher import list_kernels, write_dispatcher
from kernelwright.portfolio.tree import Leaf, Split
from kernelwright.tests.portfolio.planted import FEATURES
from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.traces.export import export

SPMM = registry.get("spmm_csr")
# No case of the self-test is so large.
TREE = Split("N", 4000.0, Leaf("row-balanced"), Leaf("nnz-balanced"))
WRONG = "for (int j = 0; j < N; ++j) C[j] += 1.0f;"


def write(change: str = "") -> str:
    made = {each.family: each.render(each.first_knobs()) for each in recipes_for("spmm_csr")}
    end = made["nnz-balanced"].rindex("}")
    made["nnz-balanced"] = f"{made['nnz-balanced'][:end]}{change}\n}}\n"
    return write_dispatcher(SPMM, TREE, FEATURES, made)


@pytest.mark.parametrize("change", ["", WRONG])
def test_the_self_test_runs_kernels_that_no_case_reaches(
    tmp_path: Path, run: Run, change: str
) -> None:
    source = write(change)
    bundle = kernels.spmm(source, kernels=list_kernels(source))
    folder = tmp_path / "package"
    export(bundle, "package", folder)
    module = module_of(folder)
    done = run(sys.executable, "-m", module, "selftest", path=folder)
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if change else 0), done.stdout + done.stderr
    for name in bundle.kernels:
        seen = {line[:4] for line in lines if f" {name}: " in line}
        assert seen == ({"FAIL"} if change and name == bundle.kernels[1] else {"pass"})
    assert all("pass" in line for line in lines if " call: " in line)
    assert "It holds 2 kernels" in (folder / "README.md").read_text()


def test_a_plain_kernel_has_no_others() -> None:
    assert list_kernels(kernels.SPMM) == ()
    assert list_kernels(write()) == ("spmm_csr_kernel_1", "spmm_csr_kernel_2")


@pytest.mark.parametrize("told", ['kernels = "a"', "kernels = [1]"])
def test_what_is_no_list_of_names_is_refused(told: str) -> None:
    with pytest.raises(UsageError, match="no list of names"):
        list_kernels(f"/*---\n[portfolio]\n{told}\n---*/\n")


def test_a_name_that_is_none_does_not_leave(tmp_path: Path) -> None:
    source = write()
    bundle = kernels.spmm(source, kernels=("a; system()",))
    with pytest.raises(UsageError, match="cannot be the name"):
        export(bundle, "package", tmp_path / "package")
