"""Names find problems and workloads; wrong ones name the nearest; signatures are exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.io import mmwrite
from scipy.sparse import random as random_sparse

from kernelwright.errors import MatrixError, UnknownNameError, UsageError
from kernelwright.kernelbench.languages import CUDA, LANGUAGES, TRITON, language_of
from kernelwright.kernelbench.manner import TIMED, Manner, Timing
from kernelwright.kernelbench.problem import Workload, c_parameters
from kernelwright.kernelbench.registry import get, names, problems, workload_for
from kernelwright.kernelbench.skeleton import signature

C_ORDER = {
    "spmv_csr": "M K nnz indptr indices values x y",
    "spmm_csr": "M N K nnz indptr indices values B C",
    "gspmm_reduce": "M N K nnz reduce indptr indices values B C",
    "sddmm_csr": "M K D nnz indptr indices U V E",
    "edge_softmax": "M H nnz indptr e alpha",
    "softmax": "M N x y",
    "softmax_backward": "M N y dy dx",
    "layernorm": "M N x gamma beta y",
    "rmsnorm": "M N x gamma y",
    "bias_gelu": "M N x bias y",
    "swiglu": "M N x y",
    "rope": "M H P x cos sin y",
    "hadamard_transform": "M N x y",
    "w8a8_linear": "M N K x w sx sw bias y",
    "residual_rmsnorm": "M N x residual gamma h q scale",
    "gemm": "M N K A B C",
    "gemv_w4a16": "M H x q scales zeros y",
    "fp8_gemm_rowwise": "M N K A B scale_a scale_b C",
    "mxfp4_quantize": "M G x q scales",
    "stochastic_round": "M N x seed y",
    "nvfp4_quantize": "M G x tensor_scale q scales",
    "wxa16_gemm": "M N G W x q scales zeros C",
}


@pytest.mark.parametrize("name", C_ORDER)
def test_the_entry_point_has_its_parameters_in_order(name: str) -> None:
    words = [parameter.split()[-1].lstrip("*") for parameter in c_parameters(get(name))]
    assert words == C_ORDER[name].split()


def test_every_problem_is_listed_once() -> None:
    assert set(names()) >= set(C_ORDER)
    assert list(names()) == sorted(set(names()))
    assert [problem.name for problem in problems()] == list(names())


def test_signatures_in_every_language() -> None:
    softmax = get("softmax")
    assert signature(softmax) == 'extern "C" void softmax(int M, int N, const float* x, float* y);'
    assert "__global__ void softmax_kernel(int M," in signature(softmax, CUDA)
    assert signature(softmax, TRITON).splitlines()[1] == (
        "def softmax_kernel(M, N, x_ptr, y_ptr, BLOCK: tl.constexpr):"
    )
    for language in LANGUAGES.values():
        for problem in problems():
            assert max(len(line) for line in signature(problem, language).splitlines()) <= 100
    with pytest.raises(UnknownNameError, match="no language named 'cxx'"):
        language_of("cxx")


def test_an_unknown_problem_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get("spmm")
    assert "spmm_csr" in caught.value.hint


def test_an_unknown_workload_names_the_nearest_of_its_own_and_the_graphs() -> None:
    with pytest.raises(UnknownNameError) as caught:
        workload_for(get("spmm_csr"), "email-enron")
    assert "email-Enron" in caught.value.hint
    with pytest.raises(UnknownNameError):
        workload_for(get("softmax"), "email-Enron")


@pytest.mark.parametrize("name", [p.name for p in problems() if "sparse" in p.tags])
def test_a_graph_is_a_workload_of_every_sparse_problem(name: str) -> None:
    problem = get(name)
    structure = problem.structure(workload_for(problem, "cora"))
    assert structure.axes["M"] == 2708
    assert structure.axes["nnz"] == 10_556
    assert tuple(structure.axes) == tuple(problem.axes)


def test_the_default_workload_is_realistic() -> None:
    for problem in problems():
        assert workload_for(problem) == problem.default_workload
        assert problem.default_workload.kind == "realistic"


def test_an_axis_can_be_chosen() -> None:
    workload = workload_for(get("spmm_csr"), "cora", N=7)
    assert get("spmm_csr").structure(workload).axes["N"] == 7
    assert workload.name == "cora:N=7"
    with pytest.raises(UsageError, match="no axis 'Q'"):
        workload_for(get("spmm_csr"), "cora", Q=7)
    with pytest.raises(UsageError, match="cannot be 0"):
        workload_for(get("spmm_csr"), "cora", N=0)


def test_a_workload_is_timed_in_a_mode_that_stands_behind_its_name() -> None:
    softmax = get("softmax")
    usual, cold = workload_for(softmax, "tiny"), workload_for(softmax, "tiny@server")
    assert (usual.timing, cold.timing) == (Timing.USUAL, Timing.SERVER)
    assert (cold.name, cold.axes, cold.kind) == ("tiny@server", usual.axes, "tiny")
    assert cold.note.endswith(TIMED[Timing.SERVER])
    assert workload_for(softmax, "@offline").name == f"{softmax.default_workload.name}@offline"
    sized = workload_for(softmax, "@offline", M=3, N=5)
    assert (sized.name, sized.timing) == ("M=3,N=5@offline", Timing.OFFLINE)
    assert workload_for(get("spmm_csr"), "cora@server", N=7).name == "cora:N=7@server"
    for named in ("tiny@often", "tiny@x1", "tiny@x17", "tiny@x2@x2", "tiny@server@offline"):
        with pytest.raises(UnknownNameError, match=named):
            workload_for(softmax, named)


def test_a_workload_is_called_several_times_at_once() -> None:
    softmax = get("softmax")
    both = workload_for(softmax, "tiny@server@x2")
    assert (both.name, both.manner) == ("tiny@x2@server", Manner(Timing.SERVER, 2))
    assert both.note.endswith(
        f"at a time in one process, each on its share of the CPUs, {TIMED[Timing.SERVER]}"
    )
    assert workload_for(softmax, "tiny@x16").instances == 16


def test_a_matrix_file_is_a_workload(tmp_path: Path) -> None:
    path = tmp_path / "mine.mtx"
    mmwrite(path, random_sparse(30, 20, density=0.1, random_state=0))
    problem = get("spmm_csr")
    workload = workload_for(problem, str(path), N=5)
    assert (workload.kind, workload.axes) == ("matrix", {"N": 5})
    structure = problem.structure(workload)
    assert (structure.axes["M"], structure.axes["K"], structure.axes["nnz"]) == (30, 20, 60)
    assert workload_for(problem, matrix=str(path)).name == "mine"


def test_a_matrix_file_that_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.mtx"
    mmwrite(path, random_sparse(30, 20, density=0.1, random_state=0))
    problem = get("spmm_csr")
    workload = workload_for(problem, matrix=str(path))
    mmwrite(path, random_sparse(30, 20, density=0.1, random_state=1))
    with pytest.raises(MatrixError, match="is not the file it was"):
        problem.structure(workload)


def test_a_dense_problem_takes_no_matrix_and_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="softmax takes no matrix"):
        workload_for(get("softmax"), matrix="a.mtx")
    with pytest.raises(MatrixError, match="absent"):
        workload_for(get("spmm_csr"), matrix=str(tmp_path / "absent.mtx"))


def test_a_workload_that_cannot_be_drawn_says_why() -> None:
    spmm = get("spmm_csr")
    with pytest.raises(UsageError, match="law 'fractal'"):
        spmm.structure(Workload(name="w", kind="tiny", axes={"N": 1}, generator={"law": "fractal"}))
    with pytest.raises(UsageError, match="no value for the axis N"):
        spmm.structure(Workload(name="w", kind="tiny", generator={"law": "rmat", "scale": 4}))
    with pytest.raises(UsageError, match="does not take"):
        spmm.structure(
            Workload(name="w", kind="tiny", axes={"N": 1}, generator={"law": "rmat", "size": 4})
        )
    with pytest.raises(UsageError, match="axis N"):
        get("softmax").structure(Workload(name="w", kind="tiny", axes={"M": 4}))


def test_a_length_that_is_no_power_of_two_is_refused_where_there_is_none_other() -> None:
    problem = get("hadamard_transform")
    with pytest.raises(UsageError, match="gives 100 for axis N") as caught:
        problem.structure(workload_for(problem, "tiny", N=100))
    assert caught.value.hint == "it is a power of two, as 64 or 128"
