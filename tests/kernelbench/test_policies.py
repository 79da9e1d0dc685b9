# SPDX-License-Identifier: Apache-2.0
"""One problem in several precisions."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.c_types import define_types
from kernelwright.kernelbench.declaration import read_declaration
from kernelwright.kernelbench.dtypes import dtype_of
from kernelwright.kernelbench.languages import CPP, CUDA
from kernelwright.kernelbench.policies import HALVES, POLICIES, declare_in, name_in, split_name
from kernelwright.kernelbench.problem import Family, Tensor
from kernelwright.kernelbench.skeleton import signature, skeleton
from kernelwright.kernelbench.stored import SUMMED, store, widen
from kernelwright.tests.sampling import TURN, at_most

OWN = """PROBLEM = {"title": "Twice", "definition": "y = 2 x", "source": "mine",
    "axes": {"M": "rows"}, "flops": "M",
    "inputs": {"x": "float32[M]: ä is float32[M]"},
    "outputs": {"y": "float32[M]: twice"},
    "workloads": {"realistic": {"64": "usual"}}}


def oracle(x):
    return 2 * x
"""


def test_names_say_the_policy() -> None:
    assert split_name("gemm_bf16") == ("gemm", POLICIES["bf16"])
    assert split_name("spmm_csr") == ("spmm_csr", None)
    assert name_in("gemm", "tf32") == "gemm_tf32"
    with pytest.raises(UnknownNameError, match="no precision policy named 'fp4'"):
        name_in("gemm", "fp4")


OF_FLOAT32 = [name for name in registry.names() if registry.get(name).policies]


@pytest.mark.parametrize("name", OF_FLOAT32)
@pytest.mark.parametrize("policy", HALVES)
def test_every_problem_has_halves(name: str, policy: str) -> None:
    problem = registry.get(name_in(name, policy))
    assert problem.base == name
    floats = [t.dtype for t in problem.tensors if dtype_of(t.dtype).is_float]
    assert set(floats) == {POLICIES[policy].inputs.name}
    assert problem.policies == ()
    assert policy in registry.get(name).policies


def test_a_policy_that_a_problem_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match="softmax has no precision policy 'int8'"):
        registry.get("softmax_int8")
    with pytest.raises(UsageError, match="'gemm_bf16' is one of ours"):
        registry.check_name("gemm_bf16", "gemm_bf16.py")
    with pytest.raises(UsageError, match="gemv_w4a16 has no precision policy 'bf16'") as raised:
        registry.get("gemv_w4a16_bf16")
    assert "the types of its tensors are its own" in raised.value.hint


def test_a_file_of_ones_own_is_declared_in_other_types() -> None:
    text = declare_in(POLICIES["bf16"], OWN, "twice.py")
    declared = read_declaration(text, "twice.py")
    assert [t.dtype for t in declared.input_tensors] == ["bfloat16"]
    assert "ä is float32[M]" in text
    assert text.endswith("return 2 * x\n")
    asked = read_declaration(declare_in(POLICIES["int8"], OWN, "twice.py"), "twice.py")
    assert (asked.policy, asked.output_tensors[0].dtype) == ("int8", "int32")


def test_a_candidate_begins_with_the_types_of_its_language() -> None:
    problem = registry.get("gemm_bf16")
    assert "const bfloat16* A" in signature(problem, CPP)
    told = skeleton(problem, CUDA)
    assert "const __nv_bfloat16* A" in told
    assert "#include <cuda_bf16.h>" in told
    assert "(float)A[" in told
    assert "struct bfloat16" in define_types(signature(problem, CPP))
    assert not define_types(signature(registry.get("gemm_f16"), CPP))


@pytest.mark.parametrize("policy", at_most(1, [*HALVES, "int8"], TURN))
def test_what_a_candidate_begins_with_compiles(policy: str) -> None:
    names = [name_in(name, policy) for name in OF_FLOAT32]
    for problem in map(registry.get, names if policy in HALVES else ["gemm_int8"]):
        source = define_types(signature(problem, CPP)) + skeleton(problem, CPP)
        flags = ["-std=c++20", "-fopenmp", "-fsyntax-only", "-x", "c++", "-"]
        done = subprocess.run(["g++", *flags], input=source, text=True, capture_output=True)
        assert done.returncode == 0, (problem.name, done.stderr)
        assert ("(int)total" in source) == (policy == "int8")


@pytest.mark.parametrize("is_summed", [False, True])
def test_float16_is_given_what_it_can_hold(is_summed: bool) -> None:
    tensor, rng = Tensor(name="x", dtype="float16", shape=("M",)), np.random.default_rng(0)
    large = rng.standard_normal(1000, np.float32) * np.float32(1e9)
    held = store(large, tensor, Family.LARGE, is_summed=is_summed, is_constant=False)
    assert np.isfinite(held).all()
    assert np.abs(held).max() <= (SUMMED if is_summed else 65504)
    assert len(np.unique(held)) > 500
    few = np.ones(1000, np.float32)
    few[3] = -1e6
    held = store(few, tensor, Family.OUTLIERS, is_summed=False, is_constant=False)
    assert (held[3], held[4]) == (-65504, 1)
    tiny = np.full(4, 2.0**-130, np.float32)
    assert (store(tiny, tensor, Family.DENORMAL, is_summed=False, is_constant=False) > 0).all()


def test_what_a_file_draws_itself_in_another_type_stays_as_it_is() -> None:
    tensor = Tensor(name="x", dtype="float16", shape=("M",))
    wrong = np.ones(3)
    found = store(wrong, tensor, Family.NORMAL, is_summed=False, is_constant=False)
    assert found.dtype == np.float64


def test_large_codes_of_one_sign_are_more_than_float32_can_count() -> None:
    rng = np.random.default_rng(0)
    large = rng.standard_normal((3, 2000), np.float32) * np.float32(1e9)
    large[:, 7] = 0
    tensor = Tensor(name="x", dtype="int8", shape=("M", "K"))
    held = store(large, tensor, Family.LARGE, is_summed=True, is_constant=False)
    size = np.abs(held.astype(np.int64))
    assert not held[:, 7].any()
    assert (size[held != 0].min(), size.max()) == (95, 127)
    assert len(np.unique(np.sign(held[held != 0]))) == 1
    assert (size**2).sum(1).min() > 1 << 24


def test_an_oracle_is_given_float32() -> None:
    codes = np.arange(-4, 4, dtype=np.int8)
    arrays = {"x": np.ones(3, np.float16), "q": codes, "d": np.ones(2)}
    found = widen(arrays, also_integers=False)
    assert {name: each.dtype.name for name, each in found.items()} == {
        "x": "float32",
        "q": "int8",
        "d": "float64",
    }
    assert widen(arrays, also_integers=True)["q"].dtype == np.float32
