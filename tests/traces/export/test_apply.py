"""The operator in the library's place: what it serves, what it leaves, and what it counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

from kernelwright.tests.traces.export import kernels
from kernelwright.tests.traces.export.conftest import Run, module_of
from kernelwright.traces.export import export

pytestmark = pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)")

Modules = dict[str, ModuleType]
RIGHT = [
    lambda a, b: a @ b,
    torch.matmul,
    torch.mm,
    torch.sparse.mm,
    lambda a, b: a.mm(b),
]


@pytest.fixture(autouse=True)
def no_gradients() -> object:
    with torch.no_grad():
        yield


def matrix(rows: int = 40, columns: int = 40, index: torch.dtype = torch.int64) -> Tensor:
    """Five entries a row, of CSR."""
    dense = torch.zeros(rows, columns)
    for row in range(rows):
        dense[row, torch.randperm(columns)[:5]] = torch.randn(5)
    found = dense.to_sparse_csr()
    return torch.sparse_csr_tensor(
        found.crow_indices().to(index), found.col_indices().to(index), found.values(), dense.shape
    )


@pytest.mark.parametrize("product", RIGHT)
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_products_of_a_csr_tensor_are_served(
    modules: Modules, product: Callable[..., Tensor], index: torch.dtype
) -> None:
    a, b = matrix(index=index), torch.randn(40, 8)
    wanted = a.to_dense() @ b
    with modules["spmm_csr"].apply() as applied:
        torch.testing.assert_close(product(a, b), wanted)
        torch.testing.assert_close(product(a, 2 * b), 2 * wanted)
    assert (applied.served, dict(applied.missed)) == (2, {})
    product(a, b)
    assert applied.served == 2


def test_what_it_cannot_serve_goes_to_the_library_with_a_reason(modules: Modules) -> None:
    a, b = matrix(), torch.randn(40, 8)
    wanted = a.to_dense() @ b
    skewed = torch.zeros(40, 40)
    skewed[0] = 1.0
    skewed[1:, :4] = 1.0
    left = {
        "layout torch.sparse_coo": lambda: a.to_sparse_coo() @ b,
        "torch.float64 where the kernel takes torch.float32": lambda: a.double() @ b.double(),
        "a tensor that is not contiguous": lambda: a @ b.t().contiguous().t(),
        "sizes far from those that were measured": lambda: a @ torch.randn(40, 33),
    }
    with modules["spmm_csr"].apply() as applied:
        for call in left.values():
            call()
        skewed.to_sparse_csr() @ b
        with torch.enable_grad():
            y = a @ b.clone().requires_grad_()
            y.sum().backward()
        torch.testing.assert_close(y.detach(), wanted)
        _ = b.t() @ b
        assert torch.relu(b).shape == b.shape
    counted = dict.fromkeys(left, 1) | {"it needs a gradient": 1}
    counted["sizes far from those that were measured"] = 2
    assert (applied.served, dict(applied.missed)) == (0, counted)


def test_a_reach_of_none_serves_any_size(modules: Modules) -> None:
    a, b = matrix(7, 90), torch.randn(90, 33)
    with modules["spmm_csr"].apply(reach=None) as applied:
        torch.testing.assert_close(a @ b, a.to_dense() @ b)
    assert applied.served == 1


def test_a_pattern_that_changed_is_read_anew(modules: Modules) -> None:
    a, b = matrix(), torch.randn(40, 8)
    with modules["spmm_csr"].apply() as applied:
        assert torch.equal(a @ b, a @ b)
        a.col_indices().copy_(39 - a.col_indices().view(40, 5).flip(1).reshape(-1))
        torch.testing.assert_close(a @ b, a.to_dense() @ b)
        a.values().mul_(3)
        torch.testing.assert_close(a @ b, a.to_dense() @ b)
    assert applied.served == 4


def test_indices_beyond_the_matrix_never_reach_the_kernel(modules: Modules) -> None:
    a, b = matrix(), torch.randn(40, 8)
    a.col_indices()[-1] = 1 << 20
    calls = sys.modules[f"{modules['spmm_csr'].__name__}._calls"]
    assert calls.bind(torch.mm, (a, b), {}) == "index tensors that are no CSR pattern"


@pytest.mark.parametrize(
    "softmax",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.softmax(x, dim=-1),
        lambda x: x.softmax(-1),
        torch.nn.Softmax(dim=-1),
    ],
)
def test_rows_of_any_shape_are_served(modules: Modules, softmax: Callable[..., Tensor]) -> None:
    x = torch.randn(4, 9, 65)
    wanted = softmax(x)
    with modules["softmax"].apply() as applied:
        torch.testing.assert_close(softmax(x), wanted)
    assert applied.served == 1


def test_another_axis_or_type_of_softmax_is_the_librarys(modules: Modules) -> None:
    x = torch.randn(60, 65)
    with modules["softmax"].apply() as applied:
        torch.softmax(x, 0)
        torch.softmax(x, 1, dtype=torch.float64)
        torch.softmax(torch.randn(9), 0)
        torch.softmax(torch.randn(1, 3000), 1)
    assert applied.served == 1
    assert applied.missed == {
        "another axis than the last": 1,
        "an answer of another type": 1,
        "sizes far from those that were measured": 1,
    }


def test_compiled_code_is_the_compilers(modules: Modules) -> None:
    function = torch.compile(lambda x: torch.softmax(x, -1) + 1, backend="eager")
    x = torch.randn(60, 65)
    with modules["softmax"].apply():
        torch.testing.assert_close(function(x), torch.softmax(x, -1) + 1)


PROGRAM = """
import torch, {module}
{module}.apply()
with torch.no_grad():
    torch.softmax(torch.randn(60, 65), -1)
"""


def test_the_environment_turns_it_off_and_asks_for_a_report(
    packages: dict[str, Path], run: Run, tmp_path: Path
) -> None:
    folder, report = packages["softmax"], tmp_path / "applied.jsonl"
    program = PROGRAM.format(module=module_of(folder))
    found = []
    for state in ("1", "0"):
        more = {"KW_APPLY": state, "KW_APPLY_REPORT": str(report)}
        done = run(sys.executable, "-c", program, path=folder, **more)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(report.read_text().splitlines()[-1]))
    assert [each["served"] for each in found] == [1, 0]
    assert found[0]["operator"] == "softmax"


def test_what_no_call_of_torch_means_has_no_apply(tmp_path: Path) -> None:
    bundle = kernels.extremes()
    export(bundle, "package", tmp_path / "out")
    assert not list((tmp_path / "out").glob("kw_*/apply.py"))
    assert "In the library's place" not in (tmp_path / "out" / "README.md").read_text()
