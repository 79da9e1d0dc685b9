"""Host code on the CPU: what it cannot have is told in a sentence; ModelNew is made as it asks."""

from __future__ import annotations

import pytest

from kernelwright.traces.records import Status, Verdict

FUNCTION = (
    "def softmax(x):\n    return torch.softmax(x, -1)\n\n\ndef run(x):\n    return softmax(x)\n"
)
CUDA = '''
SOURCE = """
__global__ void k(const float* x, float* y) {}
torch::Tensor f(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>(), 0); return x; }
"""
'''
INLINE = "from torch.utils.cpp_extension import load_inline\n" + CUDA
CALLED = "\n\ndef run(x):\n    return module.f(x)\n"
MODEL = "class ModelNew(torch.nn.Module):\n"
TRITON = """
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


def run(M, N, x):
    y = torch.empty_like(x)
    copy[(1,)](x, y, M * N, BLOCK=64)
    return y
"""
TUNED = "@triton.autotune([triton.Config({'BLOCK': 64})], ['n'])\n@triton.jit"


def judged(court, source: str, problem: str = "softmax") -> Verdict:
    return court.judge("import torch\n" + source, problem, language="python")


REFUSED = {
    "a decorator": ("@torch.compile\n" + FUNCTION, 2, "torch.compile starts a compiler"),
    "a decorator with a mode": (
        "@torch.compile(mode='max-autotune')\n" + FUNCTION,
        2,
        "torch.compile starts a compiler",
    ),
    "a call": (FUNCTION + "\n\nsoftmax = torch.compile(softmax)\n", 10, "torch.compile starts"),
    "a model that compiles itself": (
        MODEL + "    def __init__(self):\n        super().__init__()\n        self.compile()\n"
        "    def forward(self, x):\n        return x\n",
        5,
        "torch.compile starts",
    ),
    "C++ in a string": (
        INLINE + 'module = load_inline("f", cpp_sources=SOURCE)' + CALLED,
        8,
        "torch.utils.cpp_extension.load_inline starts a compiler",
    ),
    "CUDA in a string": (
        INLINE + 'module = load_inline("f", cpp_sources="", cuda_sources=SOURCE)' + CALLED,
        8,
        "torch.utils.cpp_extension.load_inline compiles CUDA",
    ),
    "CUDA in a file": (
        "from torch.utils import cpp_extension\n\n\ndef run(x):\n"
        "    return cpp_extension.load('f', ['f.cpp', 'f.cu']).f(x)\n",
        6,
        "torch.utils.cpp_extension.load compiles CUDA",
    ),
    "a Triton kernel": (TRITON, 15, "Triton kernels do not run on the target cpu"),
    "a tuned Triton kernel": (
        TRITON.replace("@triton.jit", TUNED),
        16,
        "Triton kernels do not run on the target cpu",
    ),
    "a device": ("def run(x):\n    return x.cuda().softmax(-1)\n", 3, "the target cpu has no GPU"),
}


@pytest.mark.jail
@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_had_is_refused_with_its_line(court, name: str) -> None:
    source, line, words = REFUSED[name]
    verdict = judged(court, source)
    assert verdict.status is Status.UNSUPPORTED, verdict.reasons
    assert verdict.reasons[0].startswith("not supported in host code: "), verdict.reasons
    assert words in verdict.reasons[0]
    assert f"line {line}: " in verdict.reasons[0]
    assert "Error" not in verdict.reasons[0]


@pytest.mark.jail
@pytest.mark.slow
def test_inline_cuda_is_told_where_it_belongs(court) -> None:
    reason = judged(court, REFUSED["CUDA in a string"][0]).reasons[0]
    assert "into a .cu file with a launch plan" in reason
    assert "--target sm_XX" in reason
    assert "kernelwright problems NAME --signature cuda" in reason


ACCEPTED = {
    "a compiler that is none": "@torch.compile(backend='eager')\n" + FUNCTION,
    "TorchScript": "@torch.jit.script\n" + FUNCTION,
    "a fallback": "try:\n    softmax = torch.compile(torch.softmax)\nexcept Exception:\n"
    "    softmax = torch.softmax\n\n\ndef run(x):\n    return softmax(x, -1)\n",
    "a Triton kernel for another target": TRITON.replace(
        "    y = torch", "    if not x.is_cuda:\n        return torch.softmax(x, -1)\n    y = torch"
    ),
    "what it has no use for": "def run(x, **_):\n    return torch.softmax(x, -1)\n",
    "all there is, written": "def run(**given):\n"
    "    torch.softmax(given['x'], -1, out=given['y'])\n",
    "all there is, written and returned": "def run(**given):\n"
    "    return torch.softmax(given['x'], -1, out=given['y'])\n",
    "a file of its own": "import tempfile\n\n\ndef run(x):\n"
    "    with tempfile.TemporaryFile() as file:\n        file.write(b'words')\n"
    "    return torch.softmax(x, -1)\n",
}


@pytest.mark.jail
@pytest.mark.slow
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_runs_after_all_is_judged(court, name: str) -> None:
    verdict = judged(court, ACCEPTED[name])
    # What a busy machine can do to an honest one is doubt its time, nothing else.
    assert verdict.status in (Status.SCREENED, Status.SUSPECT), verdict.reasons


SOFTMAX = "    def forward(self, x):\n        return torch.softmax(x, self.dim) * self.scale\n"
TWO = MODEL + (
    "    def __init__(self, dim, scale=2.0):\n        super().__init__()\n"
    "        self.dim, self.scale = dim, scale\n" + SOFTMAX
)
MADE = {
    "a list": TWO + "\n\ndef get_init_inputs():\n    return [1, 1.0]\n",
    "a list and a dictionary": TWO
    + "\n\ndef get_init_inputs():\n    return [[], {'dim': 1, 'scale': 1.0}]\n",
    "an axis and a list": TWO.replace("dim, scale=2.0", "N, dim, scale=2.0")
    + "\n\ndef get_init_inputs():\n    return [12345, 1, 1.0]\n",
    "a default": TWO.replace("dim, scale=2.0", "dim=-1, scale=1.0"),
    "keywords": TWO.replace("dim, scale=2.0", "dim, **more").replace(
        "dim, scale\n", "dim, more['scale']\n"
    )
    + "\n\ndef get_init_inputs():\n    return [[1], {'scale': 1.0}]\n",
    "KernelBench's whole file": TWO + "\n\nbatch, dim = 16, 64\n\n\ndef get_inputs():\n"
    "    return [torch.rand(batch, dim)]\n\n\ndef get_init_inputs():\n    return [1, 1.0]\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_model_is_made_of_what_its_file_gives(court, name: str) -> None:
    verdict = judged(court, MADE[name])
    assert verdict.status in (Status.SCREENED, Status.SUSPECT), verdict.reasons


@pytest.mark.slow
def test_an_axis_outweighs_the_file(court) -> None:
    source = MODEL + (
        "    def __init__(self, N, scale):\n        super().__init__()\n"
        "        self.n, self.scale = N, scale\n"
        "    def forward(self, x):\n        assert x.shape[1] == self.n\n"
        "        return torch.softmax(x, -1) * self.scale\n\n\n"
        "def get_init_inputs():\n    return [12345, 1.0]\n"
    )
    assert judged(court, source).status in (Status.SCREENED, Status.SUSPECT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            TWO,
            "ModelNew.__init__ needs 'dim', which is no axis of the problem (M, N): give it a "
            "default, or define get_init_inputs()",
        ),
        (
            TWO + "def get_init_inputs():\n    return [1, 2, 3]\n",
            "get_init_inputs() gives what ModelNew.__init__(dim, scale=2.0) does not take: "
            "too many",
        ),
        (
            TWO + "def get_init_inputs():\n    return 1\n",
            "get_init_inputs() returns a int, not a list",
        ),
        (
            MODEL + "    def forward(self, x, weight):\n        return x\n",
            "ModelNew.forward(self, x, weight) cannot be called: it is given all inputs of the "
            "problem in their order, forward(self, x), and returns the outputs",
        ),
        (MODEL + "    def forward(self):\n        return 1\n", "in their order, forward(self, x)"),
    ],
)
def test_a_model_that_cannot_be_made_is_told_the_contract(court, source: str, words: str) -> None:
    verdict = judged(court, source)
    assert verdict.status is Status.BUILD_FAILED, verdict.reasons
    assert words in verdict.reasons[0]


@pytest.mark.slow
def test_weights_that_a_model_draws_are_its_own(court) -> None:
    source = MODEL + (
        "    def __init__(self):\n        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.rand(1))\n"
        "    def forward(self, x):\n        return torch.softmax(x * self.weight, -1)\n"
    )
    assert judged(court, source).status is Status.INCORRECT
