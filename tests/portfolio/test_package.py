"""A dispatcher leaves as one package, whose self-test goes through every kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.portfolio.dispatcher import list_kernels, write_dispatcher
from kernelwright.portfolio.measuring import join_plain
from kernelwright.portfolio.tree import Leaf, Split
from kernelwright.tests.cli import stored
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


MARKER = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {{
  (void)K; (void)nnz; (void)indptr; (void)indices; (void)values; (void)B;
  for (long i = 0; i < (long)M * N; ++i) C[i] = {mark};
}}
"""
"""A kernel that says in its answer who was called."""
MARKED = Split(
    "N",
    8.0,
    Leaf("1"),
    Split("nnz / M", 2.5, Leaf("2"), Split("nnz * N", 800.0, Leaf("3"), Leaf("4"))),
)
CHOSEN = [
    (1, 1, 1),
    (8, 30, 1),
    (9, 1, 2),
    (9, 2, 2),
    (9, 3, 3),
    (20, 4, 3),
    (21, 4, 4),
    (99, 9, 4),
]
"""Columns of B, entries of each of ten rows, the kernel."""
CHOOSES = """
import torch, {module}
function = {module}.spmm_csr
compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
for width, entries, mark in {chosen}:
    indptr = torch.arange(0, 10 * entries + 1, entries)
    indices = torch.arange(entries).repeat(10)
    a = torch.sparse_csr_tensor(indptr, indices, torch.ones(10 * entries), (10, 40))
    b = torch.ones(40, width)
    parts = {module}.take_apart(a)
    out = torch.zeros(10, width)
    given = [function(a, b), function(indptr, indices, a.values(), b), compiled(*parts, b)]
    given.append(function(*parts, b, out=out))
    assert all((each == mark).all() for each in given), (width, entries, mark, given)
"""


def test_an_operator_chooses_by_what_each_call_brings(tmp_path: Path, run: Run) -> None:
    made = {mark: MARKER.format(mark=mark) for mark in "1234"}
    source = write_dispatcher(SPMM, MARKED, FEATURES, made)
    folder = tmp_path / "package"
    export(kernels.spmm(source, kernels=list_kernels(source)), "package", folder)
    program = CHOOSES.format(module=module_of(folder), chosen=CHOSEN)
    done = run(sys.executable, "-c", program, path=folder)
    assert done.returncode == 0, done.stderr


def test_a_portfolio_that_was_kept_leaves_by_the_command_and_is_right(
    tmp_path: Path, run: Run
) -> None:
    source = write()
    parts = join_plain([SPMM.workload("tiny"), SPMM.workload("hub-33")], "portfolio")
    stored.fill_verified(tmp_path / "home", SPMM, source, parts)
    folder = tmp_path / "package"
    command = [sys.executable, "-m", "kernelwright", "export", "@best", "-o", str(folder)]
    done = run(*command, KERNELWRIGHT_HOME=str(tmp_path / "home"), NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    tested = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    for name in ("spmm_csr_kernel_1", "spmm_csr_kernel_2"):
        assert f"{name}: worst error" in tested.stdout
    facts = (folder / module_of(folder) / "_facts.py").read_text()
    assert '"N": 32.0' in facts


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
