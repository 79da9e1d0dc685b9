"""The exported operator in this process: right, checked, and fit for torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor

from kernelwright.tests.traces.export import kernels

Modules = dict[str, ModuleType]


def spmm_inputs(name: str = "tail") -> list[Tensor]:
    case = next(case for case in kernels.spmm().cases if case.name == name)
    return [torch.from_numpy(np.array(array)) for array in case.inputs.values()]


def dense(indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor) -> Tensor:
    size = (len(indptr) - 1, len(B))
    rows = torch.repeat_interleave(torch.arange(size[0]), indptr.diff().long())
    return torch.zeros(size).index_put_((rows, indices.long()), values) @ B


def test_the_eager_operator_is_right(modules: Modules) -> None:
    spmm = modules["spmm_csr"].spmm_csr
    given = spmm_inputs()
    torch.testing.assert_close(spmm(*given), dense(*given))
    name = modules["spmm_csr"].__name__
    torch.testing.assert_close(getattr(torch.ops, name).spmm_csr(*given), dense(*given))
    x = torch.randn(3, 65)
    torch.testing.assert_close(modules["softmax"].softmax(x), torch.softmax(x, 1))


def test_out_is_written_and_returned(modules: Modules) -> None:
    given = spmm_inputs()
    out = torch.full((17, 5), float("nan"))
    assert modules["spmm_csr"].spmm_csr(*given, out=out) is out
    torch.testing.assert_close(out, dense(*given))


def test_axes_that_shapes_do_not_give_are_keywords(modules: Modules) -> None:
    x = torch.tensor([[3.0, -1.0, 2.0], [0.0, 5.0, 9.0]])
    value, place = modules["extremes"].extremes(x, K=2, side=0)
    assert value.tolist() == [[3, 3], [9, 9]]
    assert place.tolist() == [[0, 0], [2, 2]]
    out = (torch.empty(2, 1), torch.empty(2, 1, dtype=torch.int32))
    assert modules["extremes"].extremes(x, K=1, side=1, out=out) is out
    assert out[0].tolist() == [[-1], [0]]
    with pytest.raises(TypeError, match="side"):
        modules["extremes"].extremes(x, K=1)


def test_empty_shapes_give_empty_results(modules: Modules) -> None:
    indptr, none = torch.zeros(1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32)
    found = modules["spmm_csr"].spmm_csr(indptr, none, none.float(), torch.ones(3, 4))
    assert found.shape == (0, 4)


@pytest.mark.parametrize("width", [1, 5, 33])
def test_opcheck_accepts_both_forms(modules: Modules, width: int) -> None:
    indptr, indices, values, _ = spmm_inputs()
    given = (indptr, indices, values, torch.randn(9, width))
    operators = getattr(torch.ops, modules["spmm_csr"].__name__)
    assert set(torch.library.opcheck(operators.spmm_csr.default, given).values()) == {"SUCCESS"}
    out = (*given, torch.empty(17, width))
    assert set(torch.library.opcheck(operators.spmm_csr_out.default, out).values()) == {"SUCCESS"}


def test_opcheck_accepts_keywords_and_two_outputs(modules: Modules) -> None:
    operators = getattr(torch.ops, modules["extremes"].__name__)
    x, axes = torch.randn(4, 7), {"K": 3, "side": 1}
    found = torch.library.opcheck(operators.extremes.default, (x,), axes)
    assert set(found.values()) == {"SUCCESS"}
    out = (torch.empty(4, 3), torch.empty(4, 3, dtype=torch.int32))
    found = torch.library.opcheck(operators.extremes_out.default, (x, *out), axes)
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_the_operator_compiles_without_graph_breaks(modules: Modules, is_dynamic: bool) -> None:
    spmm = modules["spmm_csr"].spmm_csr

    def model(*given: Tensor) -> Tensor:
        hidden = torch.relu(spmm(*given))
        return spmm(*given, out=torch.empty_like(hidden)) + hidden

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=is_dynamic)
    for name in ("tail", "wide"):
        given = spmm_inputs(name)
        torch.testing.assert_close(compiled(*given), dense(*given) + torch.relu(dense(*given)))


def test_the_operator_compiles_where_data_give_the_number_of_nonzeros(modules: Modules) -> None:
    spmm = modules["spmm_csr"].spmm_csr

    def model(weights: Tensor, B: Tensor) -> Tensor:
        rows, columns = weights.nonzero().unbind(1)
        counts = torch.zeros(len(weights) + 1, dtype=torch.int64)
        indptr = counts.index_add_(0, rows + 1, torch.ones_like(rows)).cumsum(0)
        values = weights[rows, columns].contiguous()
        return spmm(indptr.int(), columns.int().contiguous(), values, B)

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        for seed in (1, 2):
            generator = torch.Generator().manual_seed(seed)
            weights = torch.randn(6, 7, generator=generator).relu()
            B = torch.randn(7, 5, generator=generator)
            torch.testing.assert_close(compiled(weights, B), weights @ B)


def test_the_operator_goes_into_an_exported_program(modules: Modules) -> None:
    class Model(torch.nn.Module):
        def forward(self, indptr: Tensor, indices: Tensor, values: Tensor, B: Tensor) -> Tensor:
            return modules["spmm_csr"].spmm_csr(indptr, indices, values, B)

    given = spmm_inputs("tail")
    nnz = torch.export.Dim("nnz", min=2)
    program = torch.export.export(
        Model(), tuple(given), dynamic_shapes=({}, {0: nnz}, {0: nnz}, {})
    )
    fewer = [given[0].clamp(max=3), given[1][:3].clone(), given[2][:3].clone(), given[3]]
    torch.testing.assert_close(program.module()(*fewer), dense(*fewer))


def test_meta_tensors_give_the_shape(modules: Modules) -> None:
    found = modules["spmm_csr"].spmm_csr(*(given.to("meta") for given in spmm_inputs()))
    assert found.device.type == "meta"
    assert found.shape == (17, 5)


def test_there_is_no_silent_gradient(modules: Modules) -> None:
    x = torch.randn(2, 3, requires_grad=True)
    softmax = modules["softmax"].softmax
    y = softmax(x)
    with pytest.raises(RuntimeError, match=r"softmax has no gradient for autograd: call it under"):
        y.sum().backward()
    value, _ = modules["extremes"].extremes(x, K=1, side=0)
    with pytest.raises(RuntimeError, match="extremes has no gradient"):
        value.sum().backward()
    with pytest.raises(RuntimeError, match="out= takes no inputs that require a gradient"):
        softmax(x, out=torch.empty(2, 3))
    with torch.no_grad():
        softmax(x, out=torch.empty(2, 3))


BAD: list[tuple[str, int, Callable[[Tensor], Tensor]]] = [
    (r"indptr has dtype torch.int16, not torch.int32", 0, lambda t: t.short()),
    (r"B has dtype torch.float64, not torch.float32", 3, lambda t: t.double()),
    (r"B has 1 dimensions, not 2", 3, lambda t: t[0]),
    (r"B is not contiguous", 3, lambda t: t.t().contiguous().t()),
    (r"values is not contiguous", 2, lambda t: t.repeat_interleave(2)[::2]),
    (r"values has shape \(\d+,\); \[nnz\] must be", 2, lambda t: t[1:].clone()),
    (r"axis M from the shape of indptr is -1", 0, lambda t: t[:0]),
    (r"B has layout torch.sparse_coo", 3, lambda t: t.to_sparse()),
]


@pytest.mark.parametrize(("message", "place", "spoil"), BAD, ids=[bad[0] for bad in BAD])
def test_bad_inputs_are_refused(
    modules: Modules, message: str, place: int, spoil: Callable[[Tensor], Tensor]
) -> None:
    given = spmm_inputs()
    given[place] = spoil(given[place])
    with pytest.raises(ValueError, match=message):
        modules["spmm_csr"].spmm_csr(*given)


def test_bad_outputs_are_refused(modules: Modules) -> None:
    spmm, softmax = modules["spmm_csr"].spmm_csr, modules["softmax"].softmax
    given = spmm_inputs()
    with pytest.raises(ValueError, match=r"C has shape \(17, 6\); \[M, N\] must be \(17, 5\)"):
        spmm(*given, out=torch.empty(17, 6))
    with pytest.raises(ValueError, match="C has dtype"):
        spmm(*given, out=torch.empty(17, 5, dtype=torch.float64))
    x = torch.randn(4, 4)
    with pytest.raises(ValueError, match="the output y shares memory with x"):
        softmax(x, out=x)
    memory = torch.randn(8, 4)
    with pytest.raises(ValueError, match="shares memory"):
        softmax(memory[:4], out=memory[3:7])
    softmax(memory[:4], out=memory[4:])


def test_axes_and_attributes_must_fit_a_c_int(modules: Modules) -> None:
    x = torch.randn(2, 3)
    with pytest.raises(ValueError, match="axis K from the keyword argument is -1"):
        modules["extremes"].extremes(x, K=-1, side=0)
    with pytest.raises(ValueError, match="side from the keyword argument is 4294967296"):
        modules["extremes"].extremes(x, K=1, side=2**32)
