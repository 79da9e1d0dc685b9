"""Interpreted Triton candidates: what is run, what is caught, and what is said to be out of reach.

The mistakes that kernels are made with stand in `tests/hostile/triton_bugs`.
"""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.tests.interpreting import Ran, interpreted
from kernelwright.traces.records import Status

SOFTMAX = registry.get("softmax")
GEMM = registry.get("gemm")
SMALL = Structure({"M": 6, "N": 200})
TINY = Structure({"M": 40, "N": 24, "K": 70})

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=at < N)
"""
HOST = (
    KERNEL
    + """

def run(M, N, x, y):
    assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
    softmax[(M,)](x, y, N, BLOCK=triton.next_power_of_2(N), num_warps=4)
"""
)


def run(source: str, jail: Jail, *, calls: int = 3, steps: int = 12_000) -> Ran:
    return interpreted(source, SOFTMAX, [SMALL], jail, calls=calls, steps=steps)


def assert_accepted(source: str, jail: Jail) -> None:
    ran = run(source, jail)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert ran.right == 3


ACCEPTED = {
    "a file where Triton keeps its own": HOST
    + "    with open(triton.knobs.cache.home_dir + '/mine', 'w') as file:\n"
    "        file.write('mine')\n",
    "a tensor beside what it has no use for": KERNEL
    + "\n\ndef run(x, **_):\n    y = torch.empty_like(x)\n"
    "    softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=256)\n    return y\n",
    "all there is, written": KERNEL + "\n\ndef run(**given):\n"
    "    softmax[(given['M'],)](given['x'], given['y'], given['N'], BLOCK=256)\n",
    "all there is, written and returned": KERNEL + "\n\ndef run(**given):\n"
    "    softmax[(given['M'],)](given['x'], given['y'], given['N'], BLOCK=256)\n"
    "    return given['y']\n",
    "a tensor that host code returns": KERNEL
    + "\n\ndef run(M, N, x):\n    y = torch.empty_like(x)\n"
    "    softmax[(M,)](x, y, N, BLOCK=256)\n    return y\n",
    "a model with a buffer of its own": KERNEL
    + "\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, M, N):\n"
    "        super().__init__()\n        self.kept = torch.empty(M, N, device='cuda')\n"
    "    def forward(self, x):\n"
    "        softmax[(x.shape[0],)](x, self.kept, x.shape[1], BLOCK=256)\n"
    "        return self.kept.clone()\n",
    "what torch computes in between": HOST.replace(
        "    softmax[", "    x = x - x.max(1, keepdim=True).values\n    softmax["
    ),
    "the first configuration of an autotuned kernel": HOST.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': 256}), triton.Config({'BLOCK': 2})], ['N'])\n"
        "@triton.jit",
    ).replace("BLOCK=triton.next_power_of_2(N), num_warps=4", ""),
    "a last tile that is moved back": """
import triton
import triton.language as tl


@triton.jit
def copy(x, y, total, BLOCK: tl.constexpr):
    first = tl.minimum(tl.program_id(0) * BLOCK, total - BLOCK)
    at = first + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))
"""
    + KERNEL
    + """

def run(M, N, x, y):
    half = torch.empty_like(x)
    softmax[(M,)](x, half, N, BLOCK=256)
    copy[(triton.cdiv(M * N, 512),)](half, y, M * N, BLOCK=512)
""",
    "nothing left to do for an empty grid": HOST.replace(
        "    softmax[", "    softmax[(0,)](x, y, N, BLOCK=256)\n    softmax["
    ),
}


@pytest.mark.jail
def test_a_kernel_runs_on_what_seems_to_be_a_device(jail: Jail) -> None:
    assert_accepted(HOST, jail)


@pytest.mark.jail
@pytest.mark.slow
@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_right_is_accepted(jail: Jail, name: str) -> None:
    assert_accepted(ACCEPTED[name], jail)


SPLIT = """
import torch
import triton
import triton.language as tl


@triton.jit
def gemm(A, B, C, work, M, N, K, PARTS, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    left = tl.program_id(2) * TILE + tl.arange(0, TILE)[None, :]
    a = tl.load(A + row * K + left, mask=(row < M) & (left < K), other=0.0)
    down = tl.program_id(2) * TILE + tl.arange(0, TILE)[:, None]
    b = tl.load(B + down * N + column, mask=(down < K) & (column < N), other=0.0)
    part = tl.dot(a, b, input_precision="ieee")
    inside = (row < M) & (column < N)
    place = row * N + column
    tile = work + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
{body}


def run(A, B, C, M, N, K):
    tiles = triton.cdiv(M, 32) * triton.cdiv(N, 32)
    parts = triton.cdiv(K, 32)
    work = torch.zeros(tiles, dtype=torch.int32, device=A.device)
{host}
    gemm[(triton.cdiv(M, 32), triton.cdiv(N, 32), parts)](A, B, C, work, M, N, K, {given}TILE=32)
"""
ORDERED = {
    "a lock": SPLIT.format(
        body="""
    while tl.atomic_cas(tile, 0, 1) == 1:
        pass
    old = tl.load(C + place, mask=inside, other=0.0)
    tl.store(C + place, old + part, mask=inside)
    tl.atomic_xchg(tile, 0)""",
        host="    C.zero_()",
        given="parts, ",
    ),
    "the last one adds up": SPLIT.replace("work, M", "work, rest, M").format(
        body="""
    tl.store(rest + tl.program_id(2) * M * N + place, part, mask=inside)
    if tl.atomic_add(tile, 1) == PARTS - 1:
        total = tl.zeros((TILE, TILE), tl.float32)
        for k in range(PARTS):
            total += tl.load(rest + k * M * N + place, mask=inside, other=0.0)
        tl.store(C + place, total, mask=inside)""",
        host="    rest = torch.empty(parts, M, N, device=A.device)",
        given="parts, ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDERED)
def test_programs_that_order_themselves_are_no_race(jail: Jail, name: str) -> None:
    ran = interpreted(ORDERED[name], GEMM, [TINY], jail)
    assert ran.status is None, (ran.reason, ran.log[-2000:])


@pytest.mark.slow
def test_a_lock_that_is_not_taken_is_a_race(jail: Jail) -> None:
    source = ORDERED["a lock"].replace(
        "    while tl.atomic_cas(tile, 0, 1) == 1:\n        pass\n", ""
    )
    source = source.replace("    tl.atomic_xchg(tile, 0)", "")
    ran = interpreted(source, GEMM, [TINY], jail)
    assert ran.status is Status.CRASHED
    assert "in no order" in ran.reason


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            HOST.replace(
                "e / tl.sum(e, 0)",
                "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r',"
                " [e / tl.sum(e, 0)], dtype=tl.float32, is_pure=True, pack=1)",
            ),
            "line 13: the interpreter has no inline_asm_elementwise",
        ),
        (
            HOST.replace("tl.exp(", "libdevice.j0(").replace(
                "import triton.language as tl",
                "import triton.language as tl\nfrom triton.language.extra import libdevice",
            ),
            "line 13: the interpreter has no libdevice function __nv_j0f",
        ),
    ],
    ids=["inline assembly", "libdevice"],
)
def test_what_the_interpreter_lacks_is_unsupported(jail: Jail, source: str, words: str) -> None:
    ran = run(source, jail)
    assert ran.status is Status.UNSUPPORTED, ran
    assert "not supported without a device: " in ran.reason
    assert words in ran.reason


@pytest.mark.jail
@pytest.mark.slow
def test_one_program_that_takes_too_long_is_unsupported(jail: Jail) -> None:
    ran = run(HOST, jail, steps=2)
    assert ran.status is Status.UNSUPPORTED
    assert ": one program takes more than 2 loads, stores and products" in ran.reason


@pytest.mark.slow
def test_a_call_that_takes_too_long_beside_others_stays_unknown_a_few_times(jail: Jail) -> None:
    short, long = Structure({"M": 3, "N": 20}), Structure({"M": 3, "N": 40_000})
    ran = interpreted(HOST, SOFTMAX, [short, long, short], jail, steps=10)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    # Each structure has three calls.
    assert [known["y"].all() for known in ran.known] == [*[True] * 3, *[False] * 3, *[True] * 3]
    assert not any(known["y"].any() for known in ran.known[3:6])
    ran = interpreted(HOST, SOFTMAX, [short, long, long], jail, steps=10)
    assert ran.status is Status.UNSUPPORTED
    assert ": one program takes more than 10 loads" in ran.reason


TALL = Structure({"M": 300, "N": 20})


@pytest.mark.slow
def test_of_a_large_grid_a_sample_runs_and_is_judged(jail: Jail) -> None:
    ran = interpreted(HOST, SOFTMAX, [TALL], jail, sample=60)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    for coverage, known in zip(ran.coverage, ran.known, strict=True):
        assert coverage.is_partial
        assert coverage.programs == 300
        rows = known["y"].any(1)
        assert rows.sum() == coverage.programs - coverage.left_out
        assert rows[[0, -1]].all()
        assert known["y"][rows].all()


@pytest.mark.slow
def test_a_mistake_in_the_last_program_is_in_every_sample(jail: Jail) -> None:
    wrong = HOST.replace("e / tl.sum(e, 0),", "e / tl.sum(e, 0) + (row // 299),")
    ran = interpreted(wrong, SOFTMAX, [TALL], jail, sample=60)
    assert ran.status is Status.INCORRECT
    assert "y[299, " in ran.reason


@pytest.mark.slow
def test_a_byte_that_was_there_before_is_an_answer_in_a_sample(jail: Jail) -> None:
    """Codes of 255 are common: what an output of bytes is filled with may be what is written."""
    problem = registry.get("nvfp4_quantize")
    source = skeleton(problem, LANGUAGES["triton"])
    ran = interpreted(source, problem, [Structure({"M": 37, "G": 60})], jail, calls=6, sample=60)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert all(coverage.is_partial for coverage in ran.coverage)


IN_TWO = (
    HOST.replace("torch.cuda.is_available()", "True")
    + """    half = torch.empty_like(x)
    softmax[(M,)](x, half, N, BLOCK=32)
    copy[(M,)](half, y, N, BLOCK=32)


@triton.jit
def copy(x, y, N, BLOCK: tl.constexpr):
    row = M - 1 - tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(y + row * N + at, tl.load(x + row * N + at, mask=at < N), mask=at < N)
""".replace("M - 1 - tl.program_id(0)", "tl.num_programs(0) - 1 - tl.program_id(0)")
)
ADDED = HOST.replace("tl.store(y + row * N", "tl.atomic_add(y + row * N").replace(
    "    softmax[", "    y.zero_()\n    softmax["
)


@pytest.mark.slow
@pytest.mark.parametrize("source", [IN_TWO, ADDED], ids=["a second launch", "atomics"])
def test_programs_that_need_each_other_all_run(jail: Jail, source: str) -> None:
    ran = interpreted(source, SOFTMAX, [Structure({"M": 90, "N": 20})], jail, sample=60)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert ran.right == 3
    assert not any(coverage.is_partial for coverage in ran.coverage)


@pytest.mark.slow
def test_nothing_is_judged_where_not_all_that_must_run_can(jail: Jail) -> None:
    ran = interpreted(ADDED, SOFTMAX, [Structure({"M": 2000, "N": 4})], jail, sample=60, steps=1500)
    assert ran.status is None
    assert all(coverage.is_partial for coverage in ran.coverage)
    assert not any(known["y"].any() for known in ran.known)


LIBRARY = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda.libdevice import rsqrt


@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = EXP(v - tl.max(v, 0))
    root = rsqrt(tl.sum(e, 0))
    tl.store(y + row * N + at, e * root * root, mask=at < N)


def run(M, N, x, y):
    softmax[(M,)](x, y, N, BLOCK=256)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["libdevice.exp", "tl.extra.cuda.libdevice.exp", "libdevice.fast_expf"]
)
def test_the_library_of_device_functions_is_there(jail: Jail, call: str) -> None:
    assert_accepted(LIBRARY.replace("EXP", call), jail)


ASKING = (
    KERNEL
    + """
DEVICE = triton.runtime.driver.active.get_active_torch_device()
FACTS = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
assert FACTS["multiprocessor_count"] == 132 and FACTS["warpSize"] == 32
assert triton.runtime.driver.active.get_current_target().arch == 90


def run(M, N, x):
    y = torch.empty((M, N), device=DEVICE)
    assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.current_stream().cuda_stream == 0
    kernel = softmax.warmup(x, y, N, BLOCK=256, num_warps=4, grid=(1,))
    kernel._init_handles()
    with torch.cuda.device(x.device):
        kernel[(M, 1, 1)](x, y, N, 256)
    return y
"""
)


@pytest.mark.jail
@pytest.mark.slow
def test_host_code_is_told_of_the_card_that_is_not_there(jail: Jail) -> None:
    assert_accepted(ASKING, jail)


@pytest.mark.jail
@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            HOST.replace("tl.store(y +", "tl.store(x +"),
            "line 13: program (0, 0, 0) of kernel softmax writes to the input x",
        ),
        (HOST.replace("tl.load(x + row", "tl.load(x - 1 + row"), "4 bytes before the start of x"),
        (HOST.replace("row * N + at,", "row * N + at + (1 << 40),"), "reads out of bounds"),
        (HOST + "    raise ValueError('no')\n", "its code raised ValueError: no (line 19)"),
        (HOST + "    import ctypes\n    ctypes.string_at(64)\n", "the process died of SIGSEGV"),
        (
            HOST + "    import ctypes\n    ctypes.string_at(x.data_ptr() + 4 * M * N)\n",
            "the process died of SIGSEGV",
        ),
        (HOST.replace("(M,)](", "(-1,)]("), "negative"),
    ],
)
def test_what_goes_wrong_is_a_crash_with_its_reason(jail: Jail, source: str, words: str) -> None:
    ran = run(source, jail)
    assert ran.status is Status.CRASHED, ran
    assert words in ran.reason


def test_what_masked_loads_leave_is_not_zero(jail: Jail) -> None:
    source = HOST.replace(', other=-float("inf"))', ")")
    ran = run(source, jail)
    assert ran.status is Status.INCORRECT


def test_a_wrong_shape_is_told_as_the_plain_runner_tells_it(jail: Jail) -> None:
    source = KERNEL + "\n\ndef run(M, N, x):\n    return torch.empty(M, 1)\n"
    assert (
        "output y is torch.float32 [6, 1], not torch.float32 [6, 200]" in run(source, jail).reason
    )


@pytest.mark.jail
def test_an_import_that_fails_is_told(jail: Jail) -> None:
    ran = run(HOST + "import nothing_of_this_name\n", jail)
    assert ran.status is Status.BUILD_FAILED
    assert "No module named 'nothing_of_this_name'" in ran.reason
