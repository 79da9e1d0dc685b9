"""Triton candidates become cubins and launches, or a reason; nothing here has a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from kernelwright.sandbox.plan.model import ZERO_FILL
from kernelwright.tests.interpreting import planned
from kernelwright.tests.sandbox.builders.triton_sources import (
    HOST,
    KERNEL,
    PLAN,
    SOFTMAX,
    SPMM,
    build,
    built,
    failed,
    host,
    number,
    recorded,
    scratch,
    shaped,
    tensor,
    unsupported,
)


@pytest.mark.parametrize("source", [PLAN, HOST], ids=["plan", "host code"])
def test_a_softmax_becomes_a_launch(builder: TritonBuilder, source: str) -> None:
    found = built(builder, source)
    (launches,) = found.launches
    (launch,) = launches.launches
    assert launch.grid == (64, 1, 1)
    assert launch.block == (256, 1, 1)
    assert launch.shared_bytes > 0
    # Two trailing pointers are Triton's own: work memory of the compiler and of its profiler.
    rest = (number(64), number(200), number(0), number(0))
    assert launch.arguments == (tensor(0), tensor(1), *rest)
    (facts,) = found.device.kernels
    assert facts.symbol == "softmax"
    assert facts.parameters == (8, 8, 4, 4, 8, 8)
    assert facts.max_threads == 256
    assert 8 <= facts.registers <= 255
    assert "BLOCK=256" in facts.name
    assert found.device.architecture == "sm_90a"
    assert found.device.cubins[0].artefact[:4] == b"\x7fELF"
    assert "ptxas" in found.device.cubins[0].compiler


def test_structures_share_a_cubin_only_where_it_is_right_for_both(builder: TritonBuilder) -> None:
    shapes = [shaped(64, 208), shaped(32, 224), shaped(64, 201), shaped(7, 1)]
    # With one warp a thread has several elements, and wide loads are worth having.
    found = built(builder, HOST.replace("num_warps=8", "num_warps=1"), *shapes)
    used = [each.launches[0].kernel for each in found.launches]
    assert used[0] == used[1]
    assert len(set(used)) == 3
    assert len(found.device.cubins) == 3
    # N = 1 became a constant and left the list of parameters.
    single = found.launches[3].launches[0]
    assert len(single.arguments) == len(found.launches[0].launches[0].arguments) - 1
    assert all(each.kernels == found.launches[0].kernels for each in found.launches)


def test_what_is_known_is_not_built_again(builder: TritonBuilder) -> None:
    source = HOST + "# another\n"
    first = built(builder, source)
    again = built(builder, source)
    assert not first.device.is_cached
    assert again.device.is_cached
    assert again.launches == first.launches
    more = built(builder, source, shaped(64, 200), shaped(5, 77))
    assert not more.device.is_cached
    assert more.launches[0].launches == first.launches[0].launches


def test_a_returned_tensor_is_the_output(builder: TritonBuilder) -> None:
    source = host("y = torch.empty_like(x)", "return y", "M, N, x")
    (launches,) = built(builder, source).launches
    assert launches.launches[0].arguments[:2] == (tensor(0), tensor(1))
    assert launches.scratch == ()


def test_what_is_returned_counts_where_all_is_taken(builder: TritonBuilder) -> None:
    source = host("y = torch.empty_like(x)", "return y", "M, N, x, **more")
    (launches,) = built(builder, source).launches
    assert launches.launches[0].arguments[:2] == (tensor(0), tensor(1))


def test_a_model_returns_its_output(builder: TritonBuilder) -> None:
    source = KERNEL + (
        "\n\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, N):\n        super().__init__()\n        self.N = N\n"
        "    def forward(self, x):\n        y = torch.empty_like(x)\n"
        "        softmax[(x.shape[0],)](x, y, x.shape[0], self.N, BLOCK=256)\n        return y\n"
    )
    (launches,) = built(builder, source).launches
    assert launches.launches[0].arguments[:2] == (tensor(0), tensor(1))


def test_a_model_is_made_of_what_its_file_gives(builder: TritonBuilder) -> None:
    source = KERNEL + (
        "\n\nclass ModelNew(torch.nn.Module):\n"
        "    def __init__(self, block):\n        super().__init__()\n        self.block = block\n"
        "    def forward(self, x):\n        y = torch.empty_like(x)\n        M, N = x.shape\n"
        "        softmax[(M,)](x, y, M, N, BLOCK=self.block)\n        return y\n"
    )
    given = "\n\ndef get_init_inputs():\n    return [256]\n"
    assert len(built(builder, source + given).launches) == 1
    assert "ModelNew.__init__ needs 'block'" in failed(builder, source)
    wrong = source.replace("forward(self, x)", "forward(self)")
    assert "in their order, forward(self, x)" in failed(builder, wrong + given)


INLINE = """
from torch.utils.cpp_extension import load_inline

SOURCE = "__global__ void k(float* y) {}"
module = load_inline(name="k", cpp_sources="void f();", cuda_sources=SOURCE, functions=["f"])
"""


def test_host_code_that_compiles_is_told_what_to_do(builder: TritonBuilder) -> None:
    reason = unsupported(builder, HOST + INLINE)
    assert (
        "load_inline compiles CUDA, which host code cannot do here: put the device code" in reason
    )
    assert f"line {(HOST + INLINE).count(chr(10))}: " in reason
    assert "torch.compile starts a compiler" in unsupported(
        builder, HOST + "\n\nrun = torch.compile(run)\n"
    )


def test_new_tensors_are_scratch_and_zeros_are_repeated(builder: TritonBuilder) -> None:
    source = host(
        "t = torch.zeros(M, N, device=x.device)\nu = torch.empty((N,), dtype=torch.float16)\n"
        "y.zero_()\nsoftmax[(M,)](x, t[1:], M, N, BLOCK=256)\nsoftmax[(1,)](x, u, 1, N, BLOCK=256)"
    )
    (launches,) = built(builder, source).launches
    assert [(s.dtype, s.shape) for s in launches.scratch] == [
        ("float32", (64, 200)),
        ("float16", (200,)),
    ]
    zeros, output, first, second, last = launches.launches
    assert zeros.kernel == output.kernel == ZERO_FILL
    assert zeros.arguments == (scratch(0), number(64 * 200 * 4))
    assert output.arguments == (tensor(1), number(64 * 200 * 4))
    assert first.arguments[1] == scratch(0, 200 * 4)
    assert second.arguments[1] == scratch(1)
    assert last.arguments[1] == tensor(1)


def test_a_plan_zeroes_and_offsets(builder: TritonBuilder) -> None:
    source = PLAN.replace(
        "num_warps = 8",
        """num_warps = 2
[[launch]]
zero = "part"
[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["x", {buffer = "part", offset = "M"}, "M", "N"]
constexpr = {BLOCK = 256}
[scratch.part]
shape = ["M", "N + 1"]
dtype = "float32\"""",
    )
    (launches,) = built(builder, source).launches
    first, fill, launch = launches.launches
    assert fill.arguments == (scratch(0), number(64 * 201 * 4))
    assert launch.arguments[1] == scratch(0, 64 * 4)
    assert first.arguments[1] == tensor(1)
    assert first.block == (64, 1, 1)
    assert launch.block == (128, 1, 1)


def test_structure_may_be_read_on_the_host(builder: TritonBuilder) -> None:
    source = KERNEL + (
        "\n\ndef run(M, N, indptr, C):\n    count = indptr[-1].item()\n"
        "    softmax[(M,)](C, C, count, N, BLOCK=32)\n"
    )
    structure = SPMM.structure(SPMM.workload("tiny"))
    (launches,) = built(builder, source, structure, problem=SPMM).launches
    assert launches.launches[0].arguments[2] == number(structure.axes["nnz"])


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("x = x + 1", "host code computes with torch.add on x outside a kernel"),
        ("x = x.clone()", "host code computes with torch.clone on x outside a kernel"),
        ("if x.max() > 0: pass", "host code computes with torch.max on x"),
        ("if x[0, 0].item() > 0: pass", "host code reads a value of a tensor (.item()"),
        ("y.fill_(1)", "host code fills a tensor with 1"),
        ("t = torch.full((4,), 2.0)", "host code fills a new tensor with 2.0"),
        ("y.t().zero_()", "sets a strided view to zero"),
        ("x = torch.tensor([1.0, 2.0])", "is a tensor with contents that host code made itself"),
        ("x.tolist()", "host code reads or writes the contents of a tensor outside a kernel"),
        ("x.numpy()[0] = 1", "host code reads or writes the contents of a tensor"),
    ],
)
def test_what_cannot_be_repeated_is_unsupported(
    builder: TritonBuilder, before: str, words: str
) -> None:
    assert words in unsupported(builder, host(before))


def test_a_view_returned_for_an_output_is_unsupported(builder: TritonBuilder) -> None:
    source = host("y = torch.empty(M + 1, N)", "return y[1:]", "M, N, x")
    assert "output y is returned as a part or a view" in unsupported(builder, source)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (HOST.replace("tl.exp(", "tl.exponential("), "error at line 12:9: "),
        (HOST + "raise ValueError('no')\n", "error at line 18: ValueError: no"),
        (HOST + "raise SystemExit(0)\n", "error at line 18: SystemExit: 0"),
        (HOST + "import os\nos._exit(0)\n", "the build left no result.json"),
        (HOST + "import os\nos._exit(3)\n", "the build left by itself with exit status 3"),
        (HOST.replace("num_warps=8", "num_warps=3"), "num_warps must be a power of 2"),
        (HOST.replace("(M,)]", "(-1,)]"), "negative grid"),
        (host("y = torch.empty(M, 3)", "return y", "M, N, x"), "output y is torch.float32 [64, 3]"),
        (host("y = x", "return 5", "M, N, x"), "output y is a int, not a torch.Tensor"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(builder: TritonBuilder, source: str, words: str) -> None:
    assert words in failed(builder, source)


def test_what_a_check_before_would_have_found_is_a_result_too(builder: TritonBuilder) -> None:
    found = recorded(builder, "x = '\ud800'\n" + HOST)
    assert isinstance(found, BuildFailed)
    assert "a character that UTF-8 cannot hold" in found.reason
    found = recorded(builder, HOST.replace("tl.exp(v - tl.max(v, 0))", "v @"))
    assert isinstance(found, BuildFailed)
    assert "error at line 12: invalid syntax" in found.reason
    found = recorded(builder, HOST.replace("def run", "def walk"))
    assert isinstance(found, BuildFailed)
    assert "has no attribute 'run'" in found.reason
    launches = planned(PLAN, SOFTMAX, shaped(64, 200))
    assert launches is not None
    source = PLAN.replace("def softmax", "def softmin")
    found = builder.build(TritonRequest(source, SOFTMAX, (shaped(64, 200),), plans=(launches,)))
    assert isinstance(found, BuildFailed)
    assert "defines no kernel 'softmax'" in found.reason


def test_too_much_shared_memory_is_told(builder: TritonBuilder) -> None:
    source = """
import triton
import triton.language as tl


@triton.jit
def product(x, y, N, K: tl.constexpr, T: tl.constexpr):
    at = tl.arange(0, T)[:, None] * K + tl.arange(0, T)[None, :]
    total = tl.zeros((T, T), tl.float32)
    for k in range(0, N):
        a = tl.load(x + at + k)
        b = tl.load(x + at - k)
        total = tl.dot(a, b, total)
    tl.store(y + at, total)


def run(x, y, N):
    product[(1,)](x, y, N, K=4096, T=128, num_stages=4, num_warps=8)
"""
    reason = failed(builder, source)
    assert "of shared memory, the target gives 232448: use smaller tiles" in reason


def test_a_refusal_of_ptxas_is_kept_and_its_flood_is_not(builder: TritonBuilder) -> None:
    source = HOST.replace(
        "    row = tl.program_id(0)\n",
        "    row = tl.inline_asm_elementwise('nonsense $0;', '=r', [], dtype=tl.int32, "
        "is_pure=True, pack=1)\n",
    )
    found = build(builder, source)
    assert isinstance(found, BuildFailed)
    assert "ptxas refused the kernel: " in found.reason
    assert "nonsense" in found.reason or "Parsing error" in found.reason
    assert len(found.log) < 20_000


AUTOTUNED = HOST.replace(
    "@triton.jit",
    "@triton.autotune([triton.Config({}, num_warps=w) for w in (2, 4, 8)], key=['N'])\n@triton.jit",
).replace(", num_warps=8)", ")")


def test_configurations_of_an_autotuned_kernel_are_knobs(builder: TritonBuilder) -> None:
    first = built(builder, AUTOTUNED)
    (tuned,) = first.configurations
    assert tuned.kernel == "softmax"
    assert len(tuned.configurations) == 3
    assert "num_warps: 4" in tuned.configurations[1]
    assert first.launches[0].launches[0].block == (64, 1, 1)
    request = TritonRequest(AUTOTUNED, SOFTMAX, (shaped(64, 200),), choices={"softmax": 2})
    third = builder.build(request)
    assert isinstance(third, TritonBuilt)
    assert third.configurations[0].chosen == 2
    assert third.launches[0].launches[0].block == (256, 1, 1)
    beyond = builder.build(replace(request, choices={"softmax": 3}))
    assert isinstance(beyond, BuildFailed)
    assert "has 3 configurations" in beyond.reason


def test_heuristics_and_device_functions_are_compiled(builder: TritonBuilder) -> None:
    source = (
        HOST.replace(
            "@triton.jit",
            "@triton.jit\ndef peak(v):\n    return tl.max(v, 0)\n\n\n"
            "@triton.heuristics({'BLOCK': lambda a: triton.next_power_of_2(a['N'])})\n@triton.jit",
        )
        .replace("tl.max(v, 0))", "peak(v))")
        .replace(" BLOCK=triton.next_power_of_2(N),", "")
    )
    (launches,) = built(builder, source).launches
    assert "BLOCK=256" in launches.kernels[0]


def test_work_memory_of_the_compiler_is_scratch(builder: TritonBuilder) -> None:
    source = """
import triton
import triton.language as tl


@triton.jit
def copy(x, y, M, N, T: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[T, T])
    target = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[T, T])
    row, column = tl.program_id(0) * T, tl.program_id(1) * T
    target.store([row, column], source.load([row, column]))


def run(M, N, x, y):
    copy[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, y, M, N, T=32)
"""
    (launches,) = built(builder, source, shaped(64, 208)).launches
    (work,) = launches.scratch
    (launch,) = launches.launches
    assert launch.arguments[-2:] == (scratch(0), number(0))
    assert work.shape[0] % (launch.blocks * 128) == 0


def test_the_structure_decides_what_is_cached(builder: TritonBuilder) -> None:
    source = KERNEL + (
        "\n\ndef run(M, N, indptr, C):\n    first = indptr[1].item()\n"
        "    softmax[(M,)](C, C, first, N, BLOCK=32)\n"
    )
    one = SPMM.structure(SPMM.workload("tiny"))
    moved = one.arrays["indptr"].copy()
    moved[1] = (moved[1] + 1) % (moved[2] + 1)
    assert not np.array_equal(moved, one.arrays["indptr"])
    other = Structure(one.axes, {**one.arrays, "indptr": moved})
    found = built(builder, source, one, other, problem=SPMM)
    first, second = (each.launches[0].arguments[2].value for each in found.launches)
    assert (first, second) == (int(one.arrays["indptr"][1]), int(moved[1]))
