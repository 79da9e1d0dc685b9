"""A sparse operator takes torch's CSR tensors and int64 indices, under torch.compile, too."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from kernelwright.tests.traces.export.conftest import module_of
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.traces.export import export

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse (CSR|invariant)", "ignore:.*torch.jit:DeprecationWarning"
)

Modules = dict[str, ModuleType]
BEYOND = 2**32 + 1
"""As int32 it would be 1, a column that is there."""


def matrix(rows: int = 7, columns: int = 9, index: torch.dtype = torch.int64) -> Tensor:
    dense = torch.randn(rows, columns).relu()
    dense[0, 0] = 1.0
    found = dense.to_sparse_csr()
    parts = (each.to(index) for each in (found.crow_indices(), found.col_indices()))
    return torch.sparse_csr_tensor(*parts, found.values(), dense.shape)


def graphic(a: Tensor) -> tuple[Tensor, ...]:
    """The parts as a graph takes them: no views of a sparse tensor."""
    return tuple(each.detach() for each in flat(a))


def flat(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return a.crow_indices(), a.col_indices(), a.values()


def csr_part(modules: Modules, problem: str = "spmm_csr") -> Any:
    return importlib.import_module(f"{modules[problem].__name__}._csr")


@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_a_csr_tensor_stands_for_its_parts(modules: Modules, index: torch.dtype) -> None:
    spmm = modules["spmm_csr"].spmm_csr
    a, b = matrix(index=index), torch.randn(9, 5)
    wanted = a.to_dense() @ b
    for found in (spmm(a, b), spmm(a, B=b), spmm(*flat(a), b)):
        torch.testing.assert_close(found, wanted)
    out = torch.full((7, 5), torch.nan)
    assert spmm(a, b, out=out) is out
    torch.testing.assert_close(out, wanted)
    with torch.inference_mode():
        torch.testing.assert_close(spmm(a, b), wanted)
        torch.testing.assert_close(spmm(matrix(), b).shape, wanted.shape)
        torch.testing.assert_close(spmm(*(each.clone() for each in flat(a)), b), wanted)


def test_operators_of_a_pattern_leave_what_they_do_not_read(modules: Modules) -> None:
    a, u, v = matrix(), torch.randn(7, 4), torch.randn(9, 4)
    wanted = (u @ v.t())[a.to_dense() != 0]
    torch.testing.assert_close(modules["sddmm_csr"].sddmm_csr(a, u, v), wanted)
    found = modules["row_sums"].row_sums(a)
    torch.testing.assert_close(found, a.to_dense().sum(1))
    torch.testing.assert_close(modules["row_sums"].row_sums(a.crow_indices(), a.values()), found)


@pytest.mark.parametrize("place", [0, 1])
def test_indices_beyond_int32_never_reach_the_kernel(modules: Modules, place: int) -> None:
    spmm = modules["spmm_csr"].spmm_csr
    a, b = matrix(), torch.randn(9, 5)
    for wrong in (BEYOND, -1):
        given = [each.clone() for each in flat(a)]
        given[place][-1] = wrong
        name = ("indptr", "indices")[place]
        with pytest.raises(ValueError, match=f"{name} holds {wrong}; the kernel's int32"):
            spmm(*given, b)
        unsafe = torch.sparse_csr_tensor(*given, a.shape, check_invariants=False)
        with pytest.raises(ValueError, match="no CSR pattern; row pointers have to rise"):
            spmm(unsafe, b)
    huge = torch.sparse_csr_tensor(*flat(a), (7, BEYOND))
    with pytest.raises(ValueError, match=r"more than 2\^31 entries, rows or columns"):
        spmm(huge, b)


def test_what_is_no_csr_matrix_is_refused(modules: Modules) -> None:
    spmm = modules["spmm_csr"].spmm_csr
    a, b = matrix(), torch.randn(9, 5)
    with pytest.raises(ValueError, match=r"sparse_coo; pass its \.to_sparse_csr"):
        spmm(a.to_sparse_coo(), b)
    with pytest.raises(ValueError, match="a sparse tensor of 3 dimensions"):
        spmm(torch.stack([a.to_dense()] * 2).to_sparse_csr(), b)
    with pytest.raises(ValueError, match="has 9 columns, and axis K from the shape of B is 8"):
        spmm(a, b[:8])
    with pytest.raises(ValueError, match=r"values has dtype torch\.float64"):
        spmm(a.double(), b)
    with pytest.raises(TypeError, match="beside a CSR tensor: B; 2 tensors were given"):
        spmm(a, a.values(), b)
    with pytest.raises(TypeError, match="B is missing"):
        spmm(*flat(a))


def test_a_pattern_is_narrowed_once_and_anew_when_it_was_written_to(
    modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    spmm, csr = modules["spmm_csr"].spmm_csr, csr_part(modules)
    counted: list[str] = []
    known, read = csr._narrow, csr._read_pattern
    monkeypatch.setattr(csr, "_narrow", lambda *of: counted.append("flat") or known(*of))
    monkeypatch.setattr(csr, "_read_pattern", lambda *of: counted.append("csr") or read(*of))
    a, b = torch.eye(7, 9).to_sparse_csr(), torch.randn(9, 5)
    given = flat(a)
    for _ in range(3):
        spmm(*given, b)
        spmm(a, b)
    assert counted == ["flat", "flat", "csr"]
    given[1].add_(2)
    torch.testing.assert_close(spmm(*given, b), a.to_dense() @ b)
    torch.testing.assert_close(spmm(a, b), a.to_dense() @ b)
    # The parts of a sparse tensor count together what is written to them.
    assert counted[3:] == ["flat", "flat", "csr"]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_function_may_take_a_sparse_tensor(modules: Modules, backend: str) -> None:
    """torch traces no sparse tensor: what is around the call is compiled, the call is not."""
    spmm = modules["spmm_csr"].spmm_csr

    def model(a: Tensor, b: Tensor) -> Tensor:
        return torch.relu(spmm(a, b * 2)) + 1

    def by_parts(a: Tensor, b: Tensor) -> Tensor:
        return torch.relu(spmm(a.crow_indices(), a.col_indices(), a.values(), b * 2)) + 1

    for function in (model, by_parts):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend)
        for size in (7, 8):
            a, b = matrix(size), torch.randn(9, 5)
            torch.testing.assert_close(compiled(a, b), torch.relu(a.to_dense() @ b * 2) + 1)


def test_a_whole_graph_takes_the_parts(modules: Modules) -> None:
    module = modules["spmm_csr"]

    def model(*given: Tensor) -> Tensor:
        return torch.relu(module.spmm_csr(*given)) + 1

    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    a, b = matrix(), torch.randn(9, 5)
    wanted = torch.relu(a.to_dense() @ b) + 1
    torch.testing.assert_close(compiled(*module.take_apart(a), b), wanted)
    torch.testing.assert_close(compiled(*graphic(a), b), wanted)
    itself = torch.compile(module.spmm_csr, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(itself(*module.take_apart(a), b), a.to_dense() @ b)
    wrong = [each.clone() for each in flat(a)]
    wrong[1][-1] = BEYOND
    with pytest.raises(ValueError, match="indices holds"):
        compiled(*wrong, b)
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="sparse"):
        torch.compile(model, backend="aot_eager", fullgraph=True)(a, b)


def test_int64_indices_go_into_an_exported_program(modules: Modules) -> None:
    class Model(torch.nn.Module):
        def forward(self, *given: Tensor) -> Tensor:
            return modules["spmm_csr"].spmm_csr(*given)

    a, b = matrix(), torch.randn(9, 5)
    program = torch.export.export(Model(), (*graphic(a), b))
    torch.testing.assert_close(program.module()(*graphic(a), b), a.to_dense() @ b)


def test_a_package_for_gpus_takes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cuda"
    export(recipe_bundle("spmm_csr", "cuda"), "package", folder, unverified=True)
    monkeypatch.syspath_prepend(str(folder))
    module = importlib.import_module(module_of(folder))
    a, b = matrix(), torch.randn(9, 5)
    for given in ((a, b), (*flat(a), b)):
        with pytest.raises(ValueError, match="indptr is on cpu; this kernel runs on a GPU"):
            module.spmm_csr(*given)
    assert [each.dtype for each in module.take_apart(a)[:2]] == [torch.int32] * 2
    on_meta = [each.to("meta") for each in (*flat(a), b)]
    assert module.spmm_csr(*on_meta).shape == (7, 5)


def test_indices_without_memory_have_the_shape(modules: Modules) -> None:
    given = [each.to("meta") for each in (*flat(matrix()), torch.randn(9, 5))]
    assert modules["spmm_csr"].spmm_csr(*given).shape == (7, 5)
