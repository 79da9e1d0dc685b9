"""What is wrong with a kernel is said with the line: deadlocks, divergence, bounds, traps."""

from __future__ import annotations

import numpy as np
import pytest
from emulated_operators import SGEMM, sgemm
from emulation import Case, Machine, Step

from kernelwright.sandbox.builders.emulated import schedules
from kernelwright.sandbox.builders.model import BuildFailed, EmulatedVariant, Unsupported
from kernelwright.traces.records import Status


def case(body: str, *, block: int = 64, grid: int = 1, shared_bytes: int = 0, **more: str) -> Case:
    """A kernel over 64 floats in and 64 out."""
    head = more.get("head", "")
    source = f"{head}\n__global__ void k(int n, const float* x, float* y) {{ {body} }}\n"
    step = Step(grid, block, (64, "x", "y"), shared_bytes)
    return Case(
        source, ("k",), {"x": np.arange(64, dtype=np.float32)}, {"y": ("float32", (64,))}, (step,)
    )


HANGS = {
    "a warp that one lane does not reach": (
        "float v = x[threadIdx.x];\nif (threadIdx.x != 3)\nv = __shfl_xor_sync(0xffffffff, v, 1);\n"
        "__syncthreads(); y[threadIdx.x] = v;",
        r"deadlock: 64 of 64 threads .*thread \(3, 0, 0\) at the __syncthreads of line 5, .*lanes "
        r"0x00000008 of its warp at line 4",
    ),
    "barriers on two lines": (
        "if (threadIdx.x < 32)\n__syncthreads();\nelse\n__syncthreads();\ny[threadIdx.x] = 1;",
        r"divergent threads: some threads of block .* line 3, others at that of line 5",
    ),
    "a mask without the caller": (
        "y[threadIdx.x] = __shfl_sync(0xff, x[threadIdx.x], 0);",
        r"divergent threads: thread \(8, 0, 0\) .* line 2 with the mask 0x000000ff, in which its "
        r"own lane 8 is missing",
    ),
    "two operations of a warp at once": (
        "if (threadIdx.x % 32 < 16)\ny[threadIdx.x] = __shfl_sync(~0u, 1.f, 0);\nelse\n"
        "y[threadIdx.x] = __shfl_sync(~0u, 1.f, 0);",
        r"divergent threads: lanes 15 and 16 .* different operations, at lines 3 and 5",
    ),
    "a trap": ("if (threadIdx.x == 5) __trap();", r"trap: thread \(5, 0, 0\) .* line 2: __trap"),
    "an assertion": (
        "assert(n == 65);",
        r"trap: thread \(0, 0, 0\) .* line 2: assert\(n == 65\)",
    ),
}


@pytest.mark.parametrize("name", HANGS)
def test_threads_that_wait_for_ever_are_told(machine: Machine, name: str) -> None:
    body, words = HANGS[name]
    fault = machine.fault(case(body))
    assert fault.status is Status.CRASHED
    assert_match(words, fault.reason)


def assert_match(words: str, text: str) -> None:
    with pytest.raises(ValueError, match=words):
        raise ValueError(text)


def test_threads_that_have_left_count_as_arrived(machine: Machine) -> None:
    body = (
        "if (threadIdx.x >= 40) return; __syncthreads(); y[threadIdx.x] = __shfl_sync(~0u, 2.f, 1);"
    )
    answer = machine.run(case(body))["y"]
    assert (answer[:40] == 2).all()
    assert np.isnan(answer[40:]).all()


def test_a_lane_that_is_not_there_gives_nan(machine: Machine) -> None:
    body = "y[threadIdx.x] = __shfl_down_sync(~0u, x[threadIdx.x], 1);"
    answer = machine.run(case(body, block=20))["y"]
    assert answer[:19].tolist() == list(range(1, 20))
    assert np.isnan(answer[19])


def test_a_yielding_thread_lets_others_run(machine: Machine) -> None:
    body = """
      __shared__ volatile int flag;
      if (threadIdx.x == 0) flag = 0;
      __syncthreads();
      if (threadIdx.x == 0) while (!flag) __nanosleep(100);
      if (threadIdx.x == 63) flag = 1;
      y[threadIdx.x] = 1;"""
    for schedule in schedules(1):
        assert (machine.run(case(body), schedule)["y"] == 1).all()


OUTSIDE = {
    "one past a tensor": ("y[threadIdx.x + 1] = x[threadIdx.x];", 0, "use-after-poison"),
    "read before a tensor": (
        "y[threadIdx.x] = x[(int)threadIdx.x - 1];",
        0,
        "use-after-poison",
    ),
    "static shared": (
        "__shared__ float s[63];\ns[threadIdx.x] = x[threadIdx.x]; __syncthreads();"
        "y[threadIdx.x] = s[0];",
        0,
        "(out of bounds|heap-buffer-overflow)",
    ),
    "static shared by a pointer": (
        "__shared__ float s[63]; __shared__ float t[64];\nfloat* p = s; p[threadIdx.x] = 1;"
        "t[threadIdx.x] = 1; __syncthreads(); y[threadIdx.x] = t[0];",
        0,
        "heap-buffer-overflow",
    ),
    "dynamic shared": (
        "extern __shared__ float s[];\ns[threadIdx.x] = x[threadIdx.x]; __syncthreads();"
        "y[threadIdx.x] = s[0];",
        63 * 4,
        "heap-buffer-overflow",
    ),
    "a signed overflow": (
        "int i = 2147483647 - n;\ni += 65; y[threadIdx.x] = i;",
        0,
        "signed integer overflow",
    ),
    "a misaligned vector": (
        "y[threadIdx.x] = ((const float4*)(x + 1))->x;",
        0,
        "misaligned address",
    ),
}


MISALIGNED = {
    "a read": "y[threadIdx.x] = ((const float4*)(x + 1))[threadIdx.x / 8].x;",
    "a write": "*(float2*)(y + 1 + threadIdx.x / 2 * 2 % 32) = make_float2(1, 2);",
    "a whole copy": "((float4*)y)[threadIdx.x / 8] = *(const float4*)(x + n / 32);",
    "one lane of shared memory": "__shared__ __align__(16) float s[64]; s[threadIdx.x] = 1; "
    "__syncthreads(); y[threadIdx.x] = ((float2*)(s + (threadIdx.x == 7 ? 3 : 2)))->x;",
    "halves": "y[threadIdx.x] = __low2float(*(const __half2*)((const __half*)x + 1));",
    "a double": "y[threadIdx.x] = float(*(const double*)(x + 1));",
}


@pytest.mark.parametrize("name", MISALIGNED)
def test_a_misaligned_access_ends_the_plain_build(machine: Machine, name: str) -> None:
    """Of whatever size the tensors are: sanitizers look at small ones only."""
    fault = machine.fault(case(MISALIGNED[name], head="#include <cuda_fp16.h>"))
    assert fault.status is Status.CRASHED
    lane = 7 if "lane" in name else 0
    words = rf"trap: thread \({lane}, 0, 0\) of block \(0, 0, 0\) .* line 2: misaligned address"
    assert_match(words, fault.reason)


def test_a_misaligned_access_by_an_intrinsic_ends_the_plain_build(machine: Machine) -> None:
    fault = machine.fault(case("y[threadIdx.x] = __ldg((const float4*)(x + 1)).x;"))
    assert_match(r"trap: thread \(0, 0, 0\) .* misaligned address", fault.reason)


def test_vectors_where_they_may_stand_are_read(machine: Machine) -> None:
    body = "y[threadIdx.x] = ((const float2*)(x + 2))[threadIdx.x / 4].x;"
    assert machine.run(case(body))["y"][:8].tolist() == [2.0] * 4 + [4.0] * 4


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_sanitizers_say_where(machine: Machine, name: str) -> None:
    body, shared_bytes, words = OUTSIDE[name]
    fault = machine.fault(case(body, shared_bytes=shared_bytes), variant=EmulatedVariant.ASAN)
    assert_match(words, fault.log)
    line = 3 if "\n" in body else 2
    assert f"candidate.cu:{line}" in fault.log


def test_unwritten_shared_memory_reads_as_nan(machine: Machine) -> None:
    body = "__shared__ float s[64];\nif (threadIdx.x != 9) s[threadIdx.x] = 1;\n__syncthreads();\n"
    body += "y[threadIdx.x] = s[threadIdx.x];"
    wrong = case(body, grid=3)
    assert np.isnan(machine.run(wrong)["y"]).nonzero()[0].tolist() == [9]
    assert machine.report(wrong).unwritten == {5: 3}


@pytest.mark.parametrize("barrier", [0, 1])
def test_a_missing_barrier_changes_an_answer_or_races(machine: Machine, barrier: int) -> None:
    parts = SGEMM.split("__syncthreads();")
    source = "__syncthreads();".join(parts[:2]) + parts[2] if barrier else parts[0] + parts[1]
    source = source if barrier else source + "__syncthreads();" + parts[2]
    right = sgemm(source)
    answers = [machine.run(right.case, schedule)["C"] for schedule in schedules(3)]
    assert any(not np.allclose(answer, right.expected["C"], atol=1e-3) for answer in answers)
    races = machine.report(right.case).races
    assert {(race.first_operation, race.second_operation) for race in races} <= {
        ("write", "read"),
        ("read", "write"),
    }
    lines = {race.first_line for race in races} | {race.second_line for race in races}
    assert lines == {10, 11, 14}
    assert "race on shared memory" in races[0].sentence


def test_lanes_of_a_warp_are_ordered_by_syncwarp_only(machine: Machine) -> None:
    body = "__shared__ float s[64]; int t = threadIdx.x, w = t & 32;\ns[t] = x[t];\n{}\n"
    body += "y[t] = s[w + ((t + 1) & 31)];"
    ordered = case(body.replace("{}", "__syncwarp();"))
    assert machine.report(ordered).races == ()
    shuffled = case(body.replace("{}", "__shfl_sync(~0u, 1, 0);"))
    assert [(r.first_line, r.second_line) for r in machine.report(shuffled).races] == [(3, 5)]
    across = case(body.replace("{}", "__syncwarp();").replace("w + ((t + 1) & 31)", "(t + 1) & 63"))
    assert [(r.first_line, r.second_line) for r in machine.report(across).races] == [(3, 5)]


def test_who_writes_the_same_does_not_race(machine: Machine) -> None:
    body = "__shared__ float s;\ns = {};\n__syncthreads(); y[threadIdx.x] = s;"
    assert machine.report(case(body.replace("{}", "1.0f"))).races == ()
    races = machine.report(case(body.replace("{}", "x[threadIdx.x]"))).races
    assert [(r.first_operation, r.second_operation) for r in races] == [("write", "write")]


def test_atomics_race_with_plain_accesses_only(machine: Machine) -> None:
    body = "__shared__ int s;\nif (threadIdx.x == 0) s = 0;\n{}\natomicAdd(&s, 1);\n"
    body += "__syncthreads(); y[threadIdx.x] = s;"
    assert machine.report(case(body.replace("{}", "__syncthreads();"))).races == ()
    races = machine.report(case(body.replace("{}", ""))).races
    assert [(r.first_line, r.second_line) for r in races] == [(3, 5)]


FOREIGN = {
    'asm volatile("wgmma.fence.sync.aligned;");': "line 2: inline PTX: wgmma.fence.sync.aligned",
    "k<<<1, 1>>>(n, x, y);": "line 2: a launch from the device",
    "cuda::barrier<1> b;": "line 2: libcu++",
    "cooperative_groups::this_grid().sync();": "line 2: cooperation between blocks",
    "tex2D<float>(0, 0, 0);": "line 2: textures",
    "__nv_fp6_e3m2 v;": "line 2: fp6",
    "cudaDeviceSynchronize();": "line 2: the CUDA runtime's functions",
    "y[0] = no_such_function(1);": "g++ does not take line 2:",
    "__shared__ float (*p)[3];": "line 2: a __shared__ declaration",
}


@pytest.mark.parametrize("body", FOREIGN)
def test_what_cannot_be_emulated_is_unsupported(machine: Machine, body: str) -> None:
    found = machine.attempt(case(body))
    assert isinstance(found, Unsupported)
    assert FOREIGN[body] in found.reasons[0]


def test_a_shared_variable_in_a_macro_is_unsupported(machine: Machine) -> None:
    found = machine.attempt(case("S(a); y[0] = a;", head="#define S(n) __shared__ float n"))
    assert isinstance(found, Unsupported)
    assert found.reasons == ("line 1: __shared__ inside a macro",)


def test_words_in_comments_and_strings_are_no_tokens(machine: Machine) -> None:
    body = "/* asm <<< __shared__ */ // cudaMalloc()\n"
    body += 'const char* s = "asm(\\"__shared__\\")"; y[threadIdx.x] = s[0] == \'a\' ? 1\'0 : 0;'
    assert (machine.run(case(body))["y"] == 10).all()


def test_a_kernel_that_is_not_there_is_named(machine: Machine) -> None:
    right = case("y[threadIdx.x] = x[threadIdx.x];")
    missing = Case(right.source, ("k", "other<3>"), right.inputs, right.outputs, right.steps)
    found = machine.attempt(missing)
    assert isinstance(found, Unsupported)
    assert "the kernel `other<3>` cannot be called" in found.reasons[0]
    odd = Case(right.source, ("k; }",), right.inputs, right.outputs, right.steps)
    refused = machine.attempt(odd)
    assert isinstance(refused, BuildFailed)
    assert "not the name of a kernel" in refused.reason


def test_a_source_that_ends_in_a_comment_is_the_sources_fault(machine: Machine) -> None:
    right = case("y[threadIdx.x] = 1;")
    for end in ("/*", "#if 0\n", "{", "\\"):
        broken = Case(right.source + end, right.kernels, right.inputs, right.outputs, right.steps)
        assert not hasattr(machine.attempt(broken), "artefact") or end == "\\"


def test_a_wrong_number_of_arguments_is_told(machine: Machine) -> None:
    right = case("y[threadIdx.x] = 1;")
    short = Case(right.source, ("k",), right.inputs, right.outputs, (Step(1, 64, (64, "x")),))
    assert "takes 3 arguments and is given 2" in machine.fault(short).reason


def test_a_build_is_kept(machine: Machine) -> None:
    right = case("y[threadIdx.x] = 41;")
    first = machine.built(right)
    machine._built.clear()
    again = machine.built(right)
    assert again.is_cached
    assert again.artefact == first.artefact
