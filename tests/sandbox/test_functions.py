"""One function with examples of its inputs becomes a problem, or is refused with the line."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.definition import read_text, run_text
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.definitions.refusals import explain
from kernelwright.sandbox.definitions.tracing import trace

pytestmark = pytest.mark.slow

FUNCTION = """import torch


def _centre(x):
    return x - x.mean(-1, keepdim=True)


def centred_product(x, w, scale=2.0):
    return _centre(x) @ w * scale


def get_inputs():
    return [torch.randn(12, 20), torch.randn(20, 8)]
"""
ONE = "[torch.randn(12, 20), torch.randn(20, 8)]"
BATCH = "[torch.randn(30, 20), torch.randn(20, 8)]"
OTHER = "(torch.randn(1, 7), torch.randn(7, 64))"
WITH_ONE = "[torch.randn(1, 20), torch.randn(20, 8)]"
VIEW = FUNCTION.replace("_centre(x) @ w", "_centre(x.view(-1, 5, 4)).view(-1, 20) @ w")


def with_examples(given: str, source: str = FUNCTION) -> str:
    return source.replace(ONE, given)


@pytest.mark.parametrize(
    ("given", "workloads"),
    [
        (ONE, [(12, 20, 8)]),
        (f"[{ONE}]", [(12, 20, 8)]),
        (f"[{ONE}, {OTHER}]", [(12, 20, 8), (1, 7, 64)]),
        (f"[{ONE}, {ONE}, {BATCH}]", [(12, 20, 8), (30, 20, 8)]),
        (f"[{WITH_ONE}, {ONE}]", [(1, 20, 8), (12, 20, 8)]),
    ],
)
def test_a_function_becomes_a_problem(given: str, workloads: list[tuple[int, ...]]) -> None:
    source = with_examples(given)
    assert registry.defines_module(source)
    text = trace(source, "m.py")
    problem = read_text("m", text, "m.py")
    assert problem.title == "centred_product of m.py"
    # Sizes that are the same in all examples may vary as well.
    assert {t.name: t.shape for t in problem.inputs} == {"x": ("M", "N"), "w": ("N", "K")}
    real = [w for w in problem.workloads if w.kind == "realistic"]
    assert [tuple(w.axes.values()) for w in real] == workloads
    assert problem.default_workload.name == "file"
    opened = run_text("m", text, "m.py")
    for workload in opened.workloads:
        structure = opened.structure(workload)
        drawn = opened.values(structure, Family.NORMAL, np.random.default_rng(4))
        x, w = (drawn[name].astype(float) for name in ("x", "w"))
        right = (x - x.mean(-1, keepdims=True)) @ w * 2
        assert np.allclose(opened.oracle(structure, drawn)["y1"].value, right)


def test_a_module_may_give_several_sets_of_examples() -> None:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return helper(x)\n\n\ndef helper(x):\n    return torch.relu(x)\n\n\n"
        "def get_inputs():\n    return [[torch.randn(4, 5)], [torch.randn(6, 9)]]\n"
    )
    problem = read_text("m", trace(source, "m.py"), "m.py")
    assert problem.title == "Model of m.py"
    assert [w.axes for w in problem.workloads[:2]] == [{"M": 4, "N": 5}, {"M": 6, "N": 9}]


@pytest.mark.parametrize(
    ("source", "line", "why", "remedy"),
    [
        (
            FUNCTION.replace("_centre", "centre"),
            "def centred_product",
            "of its functions 'centre', 'centred_product' each may be",
            "underscore",
        ),
        ("def get_inputs():\n    return []\n", "", "neither Model nor a function", "one function"),
        (
            FUNCTION + "\n\ndef get_init_inputs():\n    return [3]\n",
            "return [3]",
            "get_init_inputs is for the constructor",
            "leave get_init_inputs out",
        ),
        (
            with_examples(f"[{ONE}, [torch.randn(9, 9)]]"),
            "return [[",
            "gives 2 inputs in example 1 and 1 in example 2",
            "as many",
        ),
        (
            with_examples(f"[{ONE}, [torch.randn(2, 9, 20), torch.randn(20, 8)]]"),
            "return [[",
            "'x' has 2 axes in example 1 of get_inputs and 3 in example 2",
            "a file to each",
        ),
        (
            with_examples(f"[{ONE}, [torch.randn(9, 20), torch.ones(20, 8).int()]]"),
            "return [[",
            "torch.int32 for the parameter 'w'",
            "float32",
        ),
        (
            with_examples("torch.randn(0, 7), torch.randn(7, 8)"),
            "torch.randn(0",
            "gives (0, 7) for the parameter 'x': nothing is computed of a size of 0",
            "sizes are 1",
        ),
        (
            with_examples(f"[{ONE}, {OTHER}]", VIEW),
            "return [[",
            "axis 1 of 'x' is 7 in example 2 of get_inputs, and by its trace the file computes "
            "with 20 alone",
            "what fixes it",
        ),
        (
            with_examples(f"[{ONE}, [torch.randn(3, 7), torch.randn(9, 8)]]"),
            "return [[",
            "axis 0 of 'w' is 9 in example 2 of get_inputs, and by its trace the file computes "
            "with 7 alone",
            "as it must be",
        ),
    ],
)
def test_what_is_no_problem_is_refused_with_its_line(
    source: str, line: str, why: str, remedy: str
) -> None:
    with pytest.raises(Exception, match=re.escape(why)) as error:
        trace(source, "m.py")
    told = explain(error.value, "m.py")
    assert remedy in told["hint"]
    if line:
        assert line in source.splitlines()[told["line"] - 1]


def test_a_size_that_differs_may_be_fixed_where_it_does_not() -> None:
    text = trace(with_examples(f"[{ONE}, {BATCH}]", VIEW), "m.py")
    problem = read_text("m", text, "m.py")
    assert {t.name: t.shape for t in problem.inputs} == {"x": ("M", "20"), "w": ("20", "N")}
