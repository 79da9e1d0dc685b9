"""PyTorch modules in KernelBench's form become problems, or are refused with the line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.definition import read_text, run_text
from kernelwright.kernelbench.module import TracedModule
from kernelwright.kernelbench.problem import PLAIN, Family
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.definitions.process import Definition, trace_module
from kernelwright.sandbox.definitions.refusals import explain
from kernelwright.sandbox.definitions.tracing import trace
from kernelwright.sandbox.isolation import choose
from kernelwright.tests.sampling import IS_WHOLE

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


DROPOUT = "        self.drop = nn.Dropout(*sizes)\n"
ASKS = """        import urllib.request

        urllib.request.urlopen("http://192.0.2.1/weights")
"""
READS = '        open("/etc/passwd").read()\n'
MASKED = """    def forward(self, x):
        length = x.shape[1]
        seen = self.mask[:length, :length] == 1
        return (x @ x.transpose(1, 2)).masked_fill(~seen, -9.0) + self.more[:length, :length]
"""
MASKS = """        self.register_buffer("mask", torch.tril(torch.ones(*sizes)))
        self.register_buffer("more", torch.triu(torch.full(sizes, -torch.inf), 9))
        self.register_buffer("noise", torch.rand(2))
"""
LINEAR = "        self.layer = nn.Linear(*sizes)\n"
TRACED = {
    "square product": (
        model(forward("torch.matmul(A, B)", "A, B"), "torch.randn(24, 24), torch.randn(24, 24)"),
        {"A": ("M", "N"), "B": ("N", "K")},
        {"y1": ("M", "K")},
        "2*K*M*N",
    ),
    "relu": (
        model(forward("torch.relu(x)"), "torch.randn(16, 64)"),
        {"x": ("M", "N")},
        {"y1": ("M", "N")},
        "1*M*N",
    ),
    "linear and gelu": (
        model(forward("nn.functional.gelu(self.layer(x))"), "torch.randn(12, 40)", "40, 8", LINEAR),
        {"x": ("M", "40"), "layer_weight": ("8", "40"), "layer_bias": ("8",)},
        {"y1": ("M", "8")},
        "648*M",
    ),
    "row sums": (
        model(forward("x.sum(1)"), "torch.randn(16, 30)"),
        {"x": ("M", "N")},
        {"y1": ("M",)},
        "1*M*N",
    ),
    "a loss of two": (
        model(
            forward("nn.functional.mse_loss(x, y)", "x, y"), "torch.rand(8, 9), torch.rand(8, 9)"
        ),
        {"x": ("M", "N"), "y": ("M", "N")},
        {"y1": ("1",)},
        "1*M*N",
    ),
    "strided convolution": (
        model(
            forward("self.layer(x)"),
            "torch.rand(2, 3, 16, 16)",
            "3, 4, 3, 2",
            "        self.layer = nn.Conv2d(*sizes)\n",
        ),
        {"x": ("M", "3", "16", "16"), "layer_weight": ("4", "3", "3", "3"), "layer_bias": ("4",)},
        {"y1": ("M", "4", "7", "7")},
        "10584*M",
    ),
    "two outputs": (
        model(forward("(x + 1, x.max(-1).values)"), "torch.randn(6, 7)"),
        {"x": ("M", "N")},
        {"y1": ("M", "N"), "y2": ("M",)},
        "",
    ),
    "attention": (
        model(
            forward("nn.functional.scaled_dot_product_attention(q, k, v)", "q, k, v"),
            ", ".join(["torch.randn(2, 4, 10, 8)"] * 3),
        ),
        # Keys and values have one length, all three one batch, heads and width.
        {"q": ("M", "N", "K", "L"), "k": ("M", "N", "P", "L"), "v": ("M", "N", "P", "L")},
        {"y1": ("M", "N", "K", "L")},
        "4*K*L*M*N*P",
    ),
    "axes beside inputs of their names": (
        model(forward("M @ N", "M, N"), "torch.randn(4, 5), torch.randn(5, 6)"),
        {"M": ("K", "L"), "N": ("L", "P")},
        {"y1": ("K", "P")},
        "2*K*L*P",
    ),
    "inputs that C has no name for": (
        model(forward("double * 2", "double"), "torch.randn(4, 5)"),
        {"x1": ("M", "N")},
        {"y1": ("M", "N")},
        "1*M*N",
    ),
    "a multiple of four alone": (
        model(forward("x.view(x.shape[0], -1, 4) * 1"), "torch.randn(6, 12)"),
        {"x": ("M", "12")},
        {"y1": ("M", "3", "4")},
        "12*M",
    ),
    "normalised by the batch": (
        model(
            forward("self.layer(x)"),
            "torch.randn(6, 12)",
            "12",
            "        self.layer = nn.BatchNorm1d(*sizes)\n",
        ),
        {"x": ("M", "12"), "layer_weight": ("12",), "layer_bias": ("12",)},
        {"y1": ("M", "12")},
        "12*M",
    ),
}
REFUSED = {
    "raises": (model(forward("x.nothing"), "torch.randn(4, 4)"), r"m.py:9: tracing: .*nothing"),
    "labels": (model(forward("x"), "torch.randint(0, 9, (4,))"), r"m.py:\d+: .*torch.int64.*'x'"),
    "no examples": (model(forward("x"), "").replace("get_inputs", "get"), "it defines no get_inp"),
    "values decide": (
        model("    def forward(self, x):\n        return x[x > 0]\n", "torch.randn(4, 4)"),
        "tracing: ",
    ),
    "draws at random": (
        model(forward("self.drop(x)"), "torch.randn(4, 4)", "0.2", DROPOUT),
        r"m.py:10: .*draws at random \(dropout\)",
    ),
    "an index": (
        model(forward("x.argmax(1)"), "torch.randn(4, 4)"),
        r"m.py:9: .*output 1 is torch.int64",
    ),
    "writes its input": (
        model(forward("torch.relu_(x.view(-1))"), "torch.randn(4, 4)"),
        r"m.py:9: .*writes into its input 'x'",
    ),
    "branches on a value": (
        model(
            "    def forward(self, x):\n        if x.sum() > 0:\n            return x\n"
            "        return -x\n",
            "torch.randn(4, 4)",
        ),
        "m.py:9: tracing: forward branches on what a tensor holds",
    ),
    "parameters of half precision": (
        model(forward("self.layer(x.half()).float()"), "torch.randn(4, 4)", "4, 4", LINEAR).replace(
            "(*sizes)", "(*sizes, dtype=torch.half)"
        ),
        "tracing: 'layer.weight' is torch.float16: modules are traced in float32",
    ),
    "computes in half precision": (
        model(forward("(x.bfloat16() * 2).float()"), "torch.randn(4, 4)"),
        r"m.py:9: tracing: forward computes in torch.bfloat16 \(\w+\): ",
    ),
    "inputs by name": (
        model(forward("x"), "0").replace("[0]", '{"x": torch.randn(4, 4)}'),
        r"m.py:12: tracing: get_inputs gives a dict, and inputs are a list",
    ),
    "one tensor in place of a list": (
        model(forward("x"), "0").replace("[0]", "torch.randn(4, 4)"),
        r"m.py:12: tracing: get_inputs gives a Tensor, and inputs are a list",
    ),
    "takes an input by name alone": (
        model(forward("x + y", "x, *, y"), "torch.randn(4, 4), torch.randn(4, 4)"),
        r"m.py:8: tracing: forward takes 'y' by its name alone",
    ),
    "answers by name": (
        model(forward('{"y": x * 2}'), "torch.randn(4, 4)"),
        r"m.py:8: tracing: forward gives a dict: answers are one tensor or a flat tuple",
    ),
    "answers within answers": (
        model(forward("x, (x * 2, x + 1)"), "torch.randn(4, 4)"),
        r"m.py:8: tracing: forward gives a tuple: ",
    ),
    "no answer": (
        model("    def forward(self, x):\n        x.mul_(2)\n", "torch.randn(4, 4)"),
        r"m.py:8: tracing: forward gives a NoneType: ",
    ),
    "asks the network": (
        model(forward("x"), "torch.randn(4, 4)", "", ASKS),
        r"m.py:\d+: tracing: the file asks the network",
    ),
    "reads a file": (
        model(forward("x"), "torch.randn(4, 4)", "", READS),
        r"m.py:\d+: tracing: the file reads another file",
    ),
}
IN_A_JAIL = {"raises", "no examples", "asks the network", "reads a file"}
"""What only a jail stops, what the file does wrong, and what it lacks."""


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
            inner = torch.from_numpy(drawn["x"].astype(float) @ w.T + b)
            right = torch.nn.functional.gelu(inner).numpy()
            assert np.allclose(expected["y1"].value, right, rtol=1e-12, atol=1e-13)
        for tensor in problem.outputs:
            assert expected[tensor.name].value.shape == tensor.extent(structure.axes)
            assert expected[tensor.name].value.dtype == np.float64


@pytest.mark.parametrize("name", sorted(REFUSED.keys() - IN_A_JAIL))
def test_what_cannot_be_traced_is_refused(name: str) -> None:
    """As a jail has it told, without the seconds in which one loads torch."""
    source, told = REFUSED[name]
    found = {}
    try:
        trace(source, "m.py")
    except Exception as error:
        found = explain(error, "m.py")
    line = found.get("line")
    words = f"{f'm.py:{line}' if line else 'm.py'}: tracing: {found.get('why')}"
    assert re.search(told, words), words


@pytest.mark.jail
@pytest.mark.parametrize("name", sorted(IN_A_JAIL))
def test_a_jail_refuses_what_cannot_be_traced(name: str, tmp_path: Path) -> None:
    source, told = REFUSED[name]
    with pytest.raises(UsageError) as error:
        trace_module(source, "m.py", Workshop(choose(), tmp_path))
    assert re.search(told, str(error.value)), str(error.value)


class NoJail:
    """Starts nothing."""

    def start(self, *_: Any) -> Any:
        raise InterruptedError


@pytest.mark.jail
def test_each_version_of_a_file_is_traced_once(tmp_path: Path) -> None:
    source, workshop = TRACED["linear and gelu"][0], Workshop(choose(), tmp_path)
    idle = replace(workshop, jail=NoJail())  # type: ignore[arg-type]
    text = trace_module(source, "m.py", workshop)
    assert trace_module(source, "m.py", idle) == text
    for other, place in ((f"{source}\n# another\n", "m.py"), (source, "n.py")):
        with pytest.raises(InterruptedError):
            trace_module(other, place, idle)


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


def test_buffers_are_constants_and_what_slices_them_bounds_an_axis() -> None:
    source = model(MASKED, "torch.randn(2, 20, 6)", "32, 32", MASKS)
    opened = run_text("m", trace(source, "m.py"), "m.py")
    assert opened.constants == ("mask", "more", "noise")
    structure, rng = opened.structure(opened.default_workload), np.random.default_rng(3)
    first, second = (opened.values(structure, family, rng) for family in (PLAIN[0], PLAIN[1]))
    assert np.array_equal(first["mask"], np.tril(np.ones((32, 32))))
    assert all(np.array_equal(first[name], second[name]) for name in opened.constants)
    # A comparison with 1 holds as it is: no answer's scale tells of another mask.
    expected = opened.oracle(structure, first)["y1"]
    assert np.nanmax(np.where(np.isfinite(expected.value), expected.scale, 0)) < 1e3
    drawn = [s.axes for s, _ in zip(opened.variations(structure, rng), range(60), strict=False)]
    assert max(axes["N"] for axes in drawn) == 32 < max(axes["M"] for axes in drawn)


def test_hidden_shapes_have_room_for_what_a_module_holds() -> None:
    attention = run_text("m", trace(TRACED["attention"][0], "m.py"), "m.py")
    image = model(
        forward("self.layer(x)"),
        "torch.rand(4, 32, 8, 8)",
        "32",
        "        self.layer = nn.BatchNorm2d(*sizes)\n",
    )
    normalised = run_text("m", trace(image, "m.py"), "m.py")
    for opened, held in (
        (attention, lambda a: a["M"] * a["N"] * a["K"] * max(a["P"], a["L"])),
        (normalised, lambda a: 32 * a["M"] * a["N"] * a["K"]),
    ):
        structure, rng = opened.structure(opened.default_workload), np.random.default_rng(3)
        for draw in (opened.variations(structure, rng), opened.bulk(structure, rng)):
            shapes = [s.axes for s, _ in zip(draw, range(40), strict=False)]
            assert shapes
            assert max(map(held, shapes)) <= 1 << 24
        # One number has no variance, so that torch refuses a batch of one pixel.
        least = [
            s.axes for s, _ in zip(opened.variations(structure, rng), range(200), strict=False)
        ]
        assert opened is attention or min(axes["M"] for axes in least) == 2


def test_a_module_is_called_in_the_mode_in_which_it_is_made() -> None:
    name = "normalised by the batch"
    opened = run_text("m", trace(TRACED[name][0], "m.py"), "m.py")
    structure = opened.structure(opened.default_workload)
    drawn = opened.values(structure, Family.NORMAL, np.random.default_rng(4))
    x = drawn["x"].astype(float)
    right = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    right = right * drawn["layer_weight"] + drawn["layer_bias"]
    assert np.allclose(opened.oracle(structure, drawn)["y1"].value, right)
    evaluated = TRACED[name][0].replace("(*sizes)\n", "(*sizes)\n        self.eval()\n")
    assert "layer_running_mean" in trace(evaluated, "m.py")
    still = model(forward("self.drop(x) + 1"), "torch.randn(4, 4)", "0.2", DROPOUT)
    trace(still.replace("(*sizes)\n", "(*sizes)\n        self.eval()\n"), "m.py")


@pytest.mark.skipif(not IS_WHOLE, reason="a minute of torch.compile: make test-all")
def test_what_is_compiled_of_a_module_is_right(tmp_path: Path) -> None:
    from kernelwright.kernelbench.compiled_calls import keep_compiled_in
    from kernelwright.kernelbench.problem import BaselineCall

    keep_compiled_in(tmp_path)
    opened = run_text("m", trace(TRACED["linear and gelu"][0], "m.py"), "m.py")
    structure = opened.structure(opened.default_workload)
    drawn = opened.values(structure, Family.NORMAL, np.random.default_rng(4))
    outputs = {"y1": np.zeros((12, 8), np.float32)}
    baseline = next(b for b in opened.baselines if b.name == "torch.compile")
    for _ in range(2):
        prepared = baseline.prepare(BaselineCall(structure.axes, drawn, outputs))
        prepared()
    assert np.allclose(outputs["y1"], opened.oracle(structure, drawn)["y1"].value, atol=1e-4)
    # The same file is compiled once.
    assert len(list(tmp_path.glob("*.pt2"))) == 1


def test_a_problem_says_what_its_module_computes() -> None:
    from kernelwright.kernelbench.languages import LANGUAGES
    from kernelwright.kernelbench.skeleton import skeleton

    problem = read_text("m", trace(TRACED["linear and gelu"][0], "m.py"), "m.py")
    assert "return nn.functional.gelu(self.layer(x))" in problem.definition
    for language in LANGUAGES.values():
        text = skeleton(problem, language, word="./m.py")
        assert "it is right" not in text
        assert "To be written" in text or "to be written" in text
        assert "kernelwright eval ./m.py m" in text


@pytest.mark.parametrize(
    ("formula", "example", "least"),
    [
        ("torch.relu(x)", "torch.rand(8, 9)", -1.0),
        ("torch.sqrt(x)", "torch.rand(8, 9) + 0.5", 0.0),
        ("torch.log(x)", "torch.rand(8, 9) + 0.5", 0.5),
    ],
)
def test_inputs_have_signs_and_zeros_unless_the_module_takes_none(
    formula: str, example: str, least: float
) -> None:
    source = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return {formula}\n\n\ndef get_inputs():\n    return [{example}]\n"
    )
    module = TracedModule(source, "model.py", {})
    rng = np.random.default_rng(0)
    drawn = module.values({"x": (64, 64)}, Family.NORMAL, rng)["x"]
    exact = module.values({"x": (64, 64)}, Family.EXACT, rng)["x"]
    assert bool(drawn.min() < 0) is (least < 0)
    assert bool((exact == 0).any()) is (least <= 0)
