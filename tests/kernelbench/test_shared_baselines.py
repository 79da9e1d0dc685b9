"""What baselines share: functions for kinds of operators, and what they are given of a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.declaration import read_declaration
from kernelwright.kernelbench.declared import problem_of
from kernelwright.kernelbench.definition import read_text, run_text
from kernelwright.kernelbench.dtypes import DTYPES
from kernelwright.kernelbench.problem import BaselineCall, Family, Problem, Structure

CallFor = Callable[[Problem, Structure], BaselineCall]
OWN = """
import numpy as np

from kernelwright.kernelbench.problem import Expected
from kernelwright.kernelbench.sparse import csr, factors, row_terms

PROBLEM = {
    "title": "Sparse product by other names",
    "definition": "P = A F",
    "source": "here",
    "axes": {"M": "rows", "W": "width", "K": "columns", "nnz": "entries"},
    "inputs": {
        "indptr": "csr", "indices": "csr", "values": "float32[nnz]", "F": "float32[K, W]"
    },
    "outputs": {"P": "float32[M, W]"},
    "flops": "2 * nnz * W",
    "baselines": "sparse product",
    "workloads": {"realistic": {"hub": {"W": 5, "pattern": "hub 90"}}},
}


def values(structure, family, rng, K, W):
    return factors(structure, family, (K, W), rng)


def oracle(structure, values, F, K):
    value = csr(structure, values.astype(np.float64), K) @ F.astype(np.float64)
    return Expected(value, np.abs(value), row_terms(structure)[:, None])
"""
MEAN = (
    OWN.replace("sparse product", "sparse reduction")
    .replace(
        '"nnz": "entries"}', '"nnz": "entries", "reduce": "which"}, "lengths": {"reduce": [0, 1]}'
    )
    .replace('{"W": 5,', '{"W": 5, "reduce": 1,')
    .replace("Expected(value, np.abs(value), ", "Expected(value / n, np.abs(value), ")
    .replace("    value = csr", "    n = row_terms(structure)[:, None]\n    value = csr")
)
HEAD = OWN[: OWN.index("def values")]
SAMPLED = (
    HEAD.replace("sparse product", "sampled product")
    .replace('"values": "float32[nnz]"', '"L": "float32[M, W]"')
    .replace('"P": "float32[M, W]"', '"P": "float32[nnz]"')
    .replace('"flops"', '"writes_inputs": ["torch eager"], "flops"')
    + """
def oracle(structure, indices, L, F):
    from kernelwright.kernelbench.sparse import row_numbers

    return (L[row_numbers(structure)] * F[indices]).sum(1)
"""
)
SOFTMAX = (
    HEAD.replace("sparse product", "sparse softmax")
    .replace('"values": "float32[nnz]", "F": "float32[K, W]"', '"L": "float32[nnz, W]"')
    .replace('"P": "float32[M, W]"', '"P": "float32[nnz, W]"')
    + """
def oracle(structure, L):
    from kernelwright.kernelbench.sparse import row_numbers, segment_sums

    risen = np.exp(L.astype(np.float64))
    return risen / segment_sums(structure, risen)[row_numbers(structure)]
"""
)
VECTOR = OWN.replace("[K, W]", "[K]").replace("[M, W]", "[M]").replace("2 * nnz * W", "2 * nnz")
VECTOR = VECTOR.replace("(K, W), rng", "(K,), rng").replace("[:, None])", ")")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OWN, ["torch eager", "scipy", "MKL prepared", "cupy"]),
        (VECTOR, ["torch eager", "scipy", "MKL prepared", "cupy"]),
        (MEAN, ["torch eager", "scipy"]),
        (SAMPLED, ["torch eager", "torch.compile"]),
        (SOFTMAX, ["torch eager", "torch.compile"]),
    ],
    ids=["matrix", "vector", "mean", "sampled", "softmax"],
)
def test_a_file_of_ones_own_names_them(text: str, names: list[str], call_for: CallFor) -> None:
    problem = run_text("own", text, "own.py")
    assert [each.name for each in problem.baselines] == names
    assert [each.name for each in read_text("own", text, "own.py").baselines] == names
    structure = problem.structure(problem.default_workload)
    call = call_for(problem, structure)
    for baseline in problem.baselines[:2]:
        compute = baseline.prepare(call)
        for seed in (1, 2):
            drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(seed))
            for name, array in drawn.items():
                call.inputs[name][...] = array
            compute()
            expected = problem.oracle(structure, drawn)["P"].value
            np.testing.assert_allclose(call.outputs["P"], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("text", [OWN, VECTOR], ids=["matrix", "vector"])
def test_torch_multiplies_halves_on_the_cpus_which_it_has_no_sparse_product_for(
    text: str, dtype: str
) -> None:
    problem = run_text("own", text.replace("float32[", f"{dtype}["), "own.py")
    structure = problem.structure(problem.default_workload)
    host = host_dtype(DTYPES[dtype])
    drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
    (output,) = problem.outputs
    answer = np.full(output.extent(structure.axes), np.nan, host)
    call = BaselineCall(dict(structure.axes), {**structure.arrays, **drawn}, {"P": answer})
    compute = problem.baselines[0].prepare(call)
    for factor in (1, -2):
        drawn["values"][...] = (factor * drawn["values"].astype(np.float32)).astype(host)
        compute()
        expected = problem.oracle(structure, drawn)["P"].value
        np.testing.assert_allclose(answer.astype(float), expected, rtol=2**-7, atol=1e-2)


def test_a_function_of_the_file_goes_before_the_shared_one(call_for: CallFor) -> None:
    text = OWN + "\n\ndef by_scipy(P):\n    return lambda: P.fill(7)\n"
    problem = run_text("own", text, "own.py")
    call = call_for(problem, problem.structure(problem.default_workload))
    next(each for each in problem.baselines if each.name == "scipy").prepare(call)()
    assert (call.outputs["P"] == 7).all()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("sparse product", "sparse sum", "baselines is 'sparse sum', which is none of"),
        ("float32[M, W]", "float32[M, K]", "'sparse product' as baselines needs inputs indptr"),
        ("[K, W]", "[M, W]", "needs inputs indptr"),
        ('"values": "float32[nnz]"', '"weights": "float32[nnz]"', "needs inputs indptr"),
        ('"indices": "csr", ', "", "needs inputs indptr"),
    ],
)
def test_what_is_no_sparse_product_has_not_its_baselines(old: str, new: str, told: str) -> None:
    assert old in OWN
    with pytest.raises(UsageError, match="PROBLEM") as error:
        read_declaration(OWN.replace(old, new), "own.py")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (MEAN, "[0, 1]", "[1, 0]"),
        (MEAN, "reduce", "which"),
        (MEAN, "[K, W]", "[K]"),
        (SAMPLED, '"F": "float32[K, W]"', '"F": "float32[M, W]"'),
        (SAMPLED, '"F": "float32[K, W]"', '"F": "float32[K, M]"'),
        (SAMPLED, '"P": "float32[nnz]"', '"P": "float32[nnz, W]"'),
        (SOFTMAX, '"P": "float32[nnz, W]"', '"P": "float32[nnz]"'),
        (SOFTMAX, '"L": "float32[nnz, W]"', '"L": "float32[M, W]"'),
    ],
)
def test_what_is_of_another_kind_is_told_what_it_lacks(text: str, old: str, new: str) -> None:
    assert old in text
    with pytest.raises(UsageError, match="as baselines needs inputs indptr"):
        read_declaration(text.replace(old, new), "own.py")


def test_what_is_compiled_alone_is_held_as_it_stands_too(call_for: CallFor) -> None:
    text = OWN.replace('"baselines": "sparse product",', "")
    text += "\n\ndef by_compile(torch, matrix, F):\n    return torch.mm(matrix, F) + 1\n"
    problem = run_text("own", text, "own.py")
    names = ["torch eager", "torch.compile"]
    assert [each.name for each in problem.baselines] == names
    assert [each.name for each in read_text("own", text, "own.py").baselines] == names
    structure = problem.structure(problem.default_workload)
    call = call_for(problem, structure)
    compute = problem.baselines[0].prepare(call)
    for seed in (1, 2):
        drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(seed))
        for name, array in drawn.items():
            call.inputs[name][...] = array
        compute()
        expected = problem.oracle(structure, drawn)["P"].value + 1
        np.testing.assert_allclose(call.outputs["P"], expected, rtol=1e-3, atol=1e-3)


def test_functions_are_given_what_a_pattern_has(call_for: CallFor) -> None:
    seen: dict[str, Any] = {}

    def by_scipy(structure: Structure, rows: np.ndarray, matrix: Any, P: np.ndarray) -> Any:
        seen.update(numpy=rows, lengths=np.diff(structure.arrays["indptr"]), scipy=matrix)
        return lambda: P.fill(0)

    def by_torch(rows: Any, matrix: Any) -> Any:
        seen.update(torch=rows, tensor=matrix)
        return lambda: None

    declared = read_declaration(OWN, "own.py")
    problem = problem_of(
        "own",
        declared,
        {"oracle": lambda values: values, "by_scipy": by_scipy, "by_torch": by_torch},
    )
    call = call_for(problem, problem.structure(problem.default_workload))
    call.inputs["values"][...] = np.arange(call.axes["nnz"])
    for baseline in problem.baselines[:2]:
        baseline.prepare(call)
    rows = np.repeat(np.arange(call.axes["M"]), seen["lengths"])
    assert np.array_equal(seen["numpy"], rows)
    assert np.array_equal(seen["torch"].numpy(), rows)
    dense = np.zeros((call.axes["M"], call.axes["K"]), np.float32)
    dense[rows, call.inputs["indices"]] = call.inputs["values"]
    assert np.array_equal(seen["scipy"].toarray(), dense)
    assert np.array_equal(seen["tensor"].to_dense().numpy(), dense)


def test_an_input_of_such_a_name_is_itself(call_for: CallFor) -> None:
    text = OWN.replace('"F": ', '"rows": ').replace("values, F, K", "values, rows, K")
    text = text.replace("F.astype", "rows.astype").replace('"baselines": "sparse product",', "")
    seen: list[Any] = []

    def by_scipy(rows: np.ndarray) -> Any:
        seen.append(rows)
        return lambda: None

    problem = problem_of(
        "own",
        read_declaration(text, "own.py"),
        {"oracle": lambda values: values, "by_scipy": by_scipy},
    )
    call = call_for(problem, problem.structure(problem.default_workload))
    problem.baselines[0].prepare(call)
    assert seen[0] is call.inputs["rows"]
