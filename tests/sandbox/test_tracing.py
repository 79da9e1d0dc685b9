"""PyTorch modules in KernelBench's form become problems, or are refused with the line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.definition import read_text, run_text
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.definitions.process import Definition, trace_module
from kernelwright.sandbox.definitions.tracing import trace
from kernelwright.sandbox.isolation import choose

pytestmark = pytest.mark.slow

HEAD = "import torch\nimport torch.nn as nn\n\n"


def model(body: str, inputs: str, init: str = "", made: str = "") -> str:
    """A file in the form: what the constructor makes, what forward computes, its examples."""
    constructor = (
        f"    def __init__(self{init and ', *sizes'}):\n        super().__init__()\n{made}"
    )
    return (
        f"{HEAD}class Model(nn.Module):\n{constructor}\n{body}\n"
        f"def get_inputs():\n    return [{inputs}]\n"
        + (f"\ndef get_init_inputs():\n    return [{init}]\n" if init else "")
    )


def forward(expression: str, arguments: str = "x") -> str:
    return f"    def forward(self, {arguments}):\n        return {expression}\n"


LINEAR = "        self.layer = nn.Linear(*sizes)\n"
TRACED = {
    "square product": (
        model(forward("torch.matmul(A, B)", "A, B"), "torch.randn(24, 24), torch.randn(24, 24)"),
        {"x1": ("M", "N"), "x2": ("N", "K")},
        {"y1": ("M", "K")},
        "2*K*M*N",
    ),
    "relu": (
        model(forward("torch.relu(x)"), "torch.randn(16, 64)"),
        {"x1": ("M", "N")},
        {"y1": ("M", "N")},
        "1*M*N",
    ),
    "linear and gelu": (
        model(forward("nn.functional.gelu(self.layer(x))"), "torch.randn(12, 40)", "40, 8", LINEAR),
        {"x1": ("M", "40"), "layer_weight": ("8", "40"), "layer_bias": ("8",)},
        {"y1": ("M", "8")},
        "648*M",
    ),
    "row sums": (
        model(forward("x.sum(1)"), "torch.randn(16, 30)"),
        {"x1": ("M", "N")},
        {"y1": ("M",)},
        "1*M",
    ),
    "a loss of two": (
        model(
            forward("nn.functional.mse_loss(x, y)", "x, y"), "torch.rand(8, 9), torch.rand(8, 9)"
        ),
        {"x1": ("M", "N"), "x2": ("M", "N")},
        {"y1": ()},
        "1",
    ),
    "strided convolution": (
        model(
            forward("self.layer(x)"),
            "torch.rand(2, 3, 16, 16)",
            "3, 4, 3, 2",
            "        self.layer = nn.Conv2d(*sizes)\n",
        ),
        {"x1": ("M", "3", "16", "16"), "layer_weight": ("4", "3", "3", "3"), "layer_bias": ("4",)},
        {"y1": ("M", "4", "7", "7")},
        "10584*M",
    ),
    "two outputs": (
        model(forward("(x + 1, x.max(-1).values)"), "torch.randn(6, 7)"),
        {"x1": ("M", "N")},
        {"y1": ("M", "N"), "y2": ("M",)},
        "",
    ),
    "attention": (
        model(
            forward("nn.functional.scaled_dot_product_attention(q, k, v)", "q, k, v"),
            ", ".join(["torch.randn(2, 4, 10, 8)"] * 3),
        ),
        {},
        {},
        "",
    ),
}
REFUSED = {
    "raises": (model(forward("x.nothing"), "torch.randn(4, 4)"), r"m.py:9: tracing: .*nothing"),
    "labels": (model(forward("x"), "torch.randint(0, 9, (4,))"), "input 1 of forward is torch.int"),
    "no examples": (model(forward("x"), "").replace("get_inputs", "get"), "it defines no get_inp"),
    "values decide": (
        model("    def forward(self, x):\n        return x[x > 0]\n", "torch.randn(4, 4)"),
        "tracing: ",
    ),
    "branches on a value": (
        model(
            "    def forward(self, x):\n        if x.sum() > 0:\n            return x\n"
            "        return -x\n",
            "torch.randn(4, 4)",
        ),
        "m.py:9: tracing: ",
    ),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_module_becomes_a_problem_that_answers_as_it_does(name: str) -> None:
    import torch

    source, inputs, outputs, flops = TRACED[name]
    text = trace(source, "m.py")
    problem = read_text("m", text, "m.py")
    if inputs:
        assert {t.name: t.shape for t in problem.inputs} == inputs
        assert {t.name: t.shape for t in problem.outputs} == outputs
    if flops:
        assert f"'flops': '{flops}'" in text
    opened = run_text("m", text, "m.py")
    space: dict[str, object] = {}
    exec(source, space)
    for workload in problem.workloads:
        structure = problem.structure(workload)
        drawn = opened.values(structure, Family.NORMAL, np.random.default_rng(4))
        expected = opened.oracle(structure, drawn)
        if name == "linear and gelu":
            w, b = drawn["layer_weight"].astype(float), drawn["layer_bias"].astype(float)
            inner = torch.from_numpy(drawn["x1"].astype(float) @ w.T + b)
            right = torch.nn.functional.gelu(inner).numpy()
            assert np.allclose(expected["y1"].value, right, rtol=1e-12, atol=1e-13)
        for tensor in problem.outputs:
            assert expected[tensor.name].value.shape == tensor.extent(structure.axes)
            assert expected[tensor.name].value.dtype == np.float64


@pytest.mark.jail
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_refused(name: str, tmp_path: Path) -> None:
    source, told = REFUSED[name]
    with pytest.raises(UsageError) as error:
        trace_module(source, "m.py", Workshop(choose(), tmp_path))
    assert re.search(told, str(error.value)), str(error.value)


@pytest.mark.jail
def test_it_is_traced_and_answers_in_jails(tmp_path: Path) -> None:
    workshop = Workshop(choose(), tmp_path)
    text = trace_module(TRACED["linear and gelu"][0], "m.py", workshop)
    definition = Definition(read_text("m", text, "m.py"), workshop)
    try:
        problem = definition.problem()
        structure = problem.structure(problem.default_workload)
        drawn = problem.values(structure, Family.UNIFORM, np.random.default_rng(1))
        again = problem.values(structure, Family.UNIFORM, np.random.default_rng(2))
        assert problem.oracle(structure, drawn)["y1"].value.shape == (12, 8)
        # Parameters vary, too: a kernel that ignores them is wrong.
        assert not np.array_equal(drawn["layer_weight"], again["layer_weight"])
    finally:
        definition.close()
