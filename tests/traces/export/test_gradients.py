"""The gradient of an exported operator: torch's own, and by whom each part of it is computed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from kernelwright.errors import UsageError
from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.tests.traces.export.test_compiled_forms import recipe_bundle
from kernelwright.traces.export import Bundle, export
from kernelwright.traces.records import Status

pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)")

Modules = dict[str, ModuleType]
# SDDMM with a wrong answer, to see who computed a gradient.
TWICE = kernels.SDDMM.replace("E[p] = sum", "E[p] = 2 * sum")


def leaf(*size: int) -> Tensor:
    return torch.randn(*size, requires_grad=True)


def pattern(rows: int = 11, columns: int = 8) -> tuple[Tensor, Tensor]:
    dense = torch.randn(rows, columns).relu()
    dense[3] = 0
    dense[:, 2] = 0
    found = dense.to_sparse_csr()
    parts = (found.crow_indices(), found.col_indices())
    return parts[0].to(torch.int32).clone(), parts[1].to(torch.int32).clone()


def dense_product(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff().long())
    size = (len(indptr) - 1, len(b))
    return torch.zeros(size, dtype=values.dtype).index_put((rows, indices.long()), values) @ b


def compare(
    ours: Callable[..., Tensor], theirs: Callable[..., Tensor], leaves: tuple[Tensor, ...]
) -> None:
    """Forward and gradients, of a loss whose gradient is no constant and comes transposed."""

    def grads(function: Callable[..., Tensor], given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        found = function(*given).t()
        return torch.autograd.grad((found.sin() * found).sum(), given)

    exact = grads(theirs, tuple(each.detach().double().requires_grad_() for each in leaves))
    for found, wanted in zip(grads(ours, leaves), exact, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


def test_a_dense_product_has_the_gradient_by_its_own_kernel(modules: Modules) -> None:
    gemm = modules["gemm"].gemm
    leaves = (leaf(5, 7), leaf(7, 3))
    compare(gemm, torch.matmul, leaves)
    compiled = torch.compile(gemm, fullgraph=True, backend="aot_eager")
    compare(compiled, torch.matmul, leaves)
    a, b = leaves
    only = torch.autograd.grad(gemm(a, b.detach()).sum(), a)[0]
    torch.testing.assert_close(only, b.detach().sum(1).expand(5, 7))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_sparse_product_has_the_gradient_of_values_and_rows(
    modules: Modules, is_compiled: bool
) -> None:
    indptr, indices = pattern()

    def ours(values: Tensor, b: Tensor) -> Tensor:
        return modules["spmm_csr"].spmm_csr(indptr, indices, values, b)

    def theirs(values: Tensor, b: Tensor) -> Tensor:
        return dense_product(indptr, indices, values, b)

    function = torch.compile(ours, fullgraph=True, backend="aot_eager") if is_compiled else ours
    leaves = (leaf(len(indices)), leaf(8, 5))
    for _ in range(2):
        compare(function, theirs, leaves)
        indices[:1] = 0  # what is kept of the transposed pattern is not the old one's
    torch.testing.assert_close(ours(*leaves), theirs(*leaves))


def test_a_csr_tensor_that_is_trained_gets_its_gradient(modules: Modules) -> None:
    a = torch.randn(7, 9).relu().to_sparse_csr().requires_grad_()
    b = leaf(9, 4)
    modules["spmm_csr"].spmm_csr(a, b).square().sum().backward()
    whole, right = a.detach().to_dense().requires_grad_(), b.detach().clone().requires_grad_()
    (whole @ right).square().sum().backward()
    assert a.grad is not None
    assert whole.grad is not None
    at = a.detach().to_dense() != 0
    torch.testing.assert_close(a.grad.values(), whole.grad[at])
    torch.testing.assert_close(b.grad, right.grad)


def test_long_patterns_are_sampled_in_parts(
    modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    csr = importlib.import_module(f"{modules['spmm_csr'].__name__}._csr")
    indptr, indices = pattern()
    left, right = torch.randn(11, 5), torch.randn(8, 5)
    whole = csr.sample(indptr, indices, left, right)
    monkeypatch.setattr(csr, "AT_ONCE", 12)
    assert torch.equal(csr.sample(indptr, indices, left, right), whole)


def test_opcheck_accepts_the_gradients(modules: Modules) -> None:
    for name, given in (
        ("gemm", (leaf(5, 7), leaf(7, 3))),
        ("spmm_csr", (*pattern(), leaf(len(pattern()[1])), leaf(8, 5))),
    ):
        if name == "spmm_csr":
            indptr, indices = pattern()
            given = (indptr, indices, leaf(len(indices)), leaf(8, 5))
        operator = getattr(getattr(torch.ops, modules[name].__name__), name).default
        assert set(torch.library.opcheck(operator, given).values()) == {"SUCCESS"}


@pytest.fixture
def imported(
    tmp_path: Path, modules: Modules, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Bundle], tuple[Any, Path]]:
    """Exports and imports a package; `modules` sets the folder of compiled kernels."""
    assert modules

    def start(bundle: Bundle) -> tuple[Any, Path]:
        folder = tmp_path / "package"
        export(bundle, "package", folder)
        monkeypatch.syspath_prepend(str(folder))
        for each in [each for each in sys.modules if each.split(".")[0] == module_of(folder)]:
            monkeypatch.delitem(sys.modules, each)
        return importlib.import_module(module_of(folder)), folder

    return start


# Another text, since torch knows an operator once for each process.
AGAIN = kernels.SPMM + "// with a second kernel\n"


def test_a_second_kernel_computes_the_gradient_of_the_values(
    imported: Callable[[Bundle], tuple[Any, Path]], run: Run
) -> None:
    module, folder = imported(kernels.spmm(AGAIN, backward=kernels.sddmm(TWICE)))
    indptr, indices = pattern()
    values, b = leaf(len(indices)), leaf(8, 5)
    module.spmm_csr(indptr, indices, values, b).sum().backward()
    right = torch.autograd.grad(dense_product(indptr, indices, values, b).sum(), (values, b))
    # The second kernel's answers are twice what they should be: so it is the one that was asked.
    torch.testing.assert_close(values.grad, 2 * right[0])
    torch.testing.assert_close(b.grad, right[1])
    second = f"{module_of(folder)}.kw_sddmm_csr_{kernels.sddmm(TWICE).short}"
    tested = run(sys.executable, "-m", second, "selftest", path=folder)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert f'"{second}"' in (folder / "pyproject.toml").read_text()


def test_readme_and_record_say_who_computes_it(tmp_path: Path) -> None:
    def told(bundle: Bundle, name: str) -> tuple[dict[str, str] | None, str]:
        folder = tmp_path / name
        export(bundle, "package", folder)
        text = (folder / module_of(folder) / "provenance.json").read_text()
        return json.loads(text)["gradient"], (folder / "README.md").read_text()

    ways, readme = told(kernels.spmm(), "alone")
    assert ways is not None
    assert ways["values"] == "operations of torch's, which nobody verified here"
    assert "of `values` by operations of torch's, which nobody verified" in readme
    assert "of `B` by this kernel, on the transposed matrix" in readme
    ways, readme = told(kernels.spmm(backward=kernels.sddmm()), "two")
    assert ways is not None
    assert ways["values"] == f"the kernel {kernels.sddmm().short} of sddmm_csr"
    ways, readme = told(kernels.softmax(), "none")
    assert ways is None
    assert "**no gradient**" in readme


def test_what_is_no_second_kernel_is_refused(tmp_path: Path) -> None:
    spmm, sddmm = kernels.spmm(), kernels.sddmm()
    refused = [
        (replace(kernels.softmax(), backward=sddmm), "softmax takes no second kernel"),
        (replace(spmm, backward=kernels.softmax()), "takes a kernel of sddmm_csr, and"),
        (replace(spmm, problem="spmm_csr_f16", backward=sddmm), "takes a kernel of sddmm_csr_f16"),
        (replace(recipe_bundle("spmm_csr", "cuda"), backward=sddmm), "one runs on a GPU"),
    ]
    for bundle, words in refused:
        with pytest.raises(UsageError, match=words) as told:
            export(bundle, "package", tmp_path / "out", unverified=True)
        assert told.value.hint
    assert not (tmp_path / "out").exists()
    assert sddmm.verdict.status is Status.VERIFIED
