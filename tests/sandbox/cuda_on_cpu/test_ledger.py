"""Races on global memory, and who wrote what: mistakes are told, what is meant is not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from emulation import LIMITS, TIMEOUT_S, Case, Machine, Step

from kernelwright.sandbox.builders.model import EmulatedVariant
from kernelwright.sandbox.plan.model import Scratch
from kernelwright.sandbox.run.memory_access import AccessReport, examine

SCRATCH = (
    Scratch("parts", "float32", (64,)),
    Scratch("count", "int32", (1,)),
    Scratch("lock", "int32", (1,)),
    Scratch("halves", "float16", (64,)),
)
ARGUMENTS = ("x", "y", "parts", "count", "lock", "halves")
PARAMETERS = (
    "const float* x, float* y, float* parts, unsigned* count, int* lock, unsigned short* halves"
)


@dataclass(frozen=True)
class Body:
    """A kernel over 64 floats in and 64 out, in 8 blocks of 32 threads unless told otherwise."""

    text: str
    lines: tuple[tuple[int, int], ...] = ()
    """Pairs of lines that race."""
    buffer: str = "y"
    grid: int = 8
    block: int = 32
    before: str = ""
    """The body of a kernel that is launched first, on one block."""

    @property
    def case(self) -> Case:
        source = f"__global__ void k({PARAMETERS}) {{ {self.text} }}\n"
        source += f"__global__ void first({PARAMETERS}) {{ {self.before} }}\n"
        steps = [
            Step(grid=(1, 1, 1), arguments=("count", 4), zero=True),
            Step(grid=(1, 1, 1), arguments=("lock", 4), zero=True),
        ]
        if self.before:
            steps.append(Step(1, 64, ARGUMENTS, kernel=1))
        steps.append(Step(self.grid, self.block, ARGUMENTS))
        return Case(
            source,
            ("k", "first"),
            {"x": np.arange(64, dtype=np.float32)},
            {"y": ("float32", (64,))},
            tuple(steps),
            SCRATCH,
        )


LAST_BLOCK = """int t = threadIdx.x, b = blockIdx.x; __shared__ bool is_last;
parts[b * 8 + t % 8] = x[b];
{fence}
__syncthreads();
if (t == 0) is_last = atomicAdd(count, 1) == gridDim.x - 1;
__syncthreads();
if (is_last) y[t] = parts[t] + parts[t + 32];"""

MEANT = {
    "the last block adds up": Body(LAST_BLOCK.replace("{fence}", "__threadfence();")),
    "one thread speaks for its block": Body(
        LAST_BLOCK.replace(
            "{fence}\n__syncthreads();\nif (t == 0)",
            "__syncthreads();\nif (t == 0) __threadfence();\nif (t == 0)",
        ),
    ),
    "a queue of work": Body(
        "__shared__ unsigned next;\nfor (;;) {\n__syncthreads();\n"
        "if (threadIdx.x == 0) next = atomicAdd(count, 1);\n__syncthreads();\n"
        "if (next >= 2) return;\ny[next * 32 + threadIdx.x] = x[next * 32 + threadIdx.x]; }"
    ),
    "sums by atomics": Body(
        "atomicAdd(&y[threadIdx.x], x[threadIdx.x]);", before="y[threadIdx.x] = 0;"
    ),
    "a loop around atomicCAS": Body(
        "int* at = (int*)&y[threadIdx.x % 4]; int old = *at, seen;\n"
        "do { seen = old; old = atomicCAS(at, seen, __float_as_int(fmaxf(__int_as_float(seen), "
        "x[threadIdx.x]))); } while (old != seen);",
        before="y[threadIdx.x] = 0;",
    ),
    "a look before an atomic": Body(
        "int* at = (int*)y;\nif (*at < (int)threadIdx.x) atomicMax(at, (int)threadIdx.x);",
        before="y[threadIdx.x] = 0;",
    ),
    "a lock": Body(
        "if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1)) __nanosleep(10);\n__threadfence();\n"
        "y[0] += x[blockIdx.x];\n__threadfence();\natomicExch(lock, 0); }",
        before="y[threadIdx.x] = 0;",
    ),
    "a lock for each thread": Body(
        "bool done = false; while (!done) { if (atomicCAS(lock, 0, 1) == 0) { __threadfence();\n"
        "y[0] += x[threadIdx.x];\n__threadfence(); atomicExch(lock, 0); done = true; } "
        "else __nanosleep(1); }",
        before="y[threadIdx.x] = 0;",
    ),
    "a flag that a later block waits for": Body(
        "volatile unsigned* flag = count; int b = blockIdx.x;\nif (threadIdx.x == 0) {\n"
        "while (*flag != b) __nanosleep(10);\n__threadfence();\n"
        "y[0] = b ? y[0] + x[b] : x[b];\n__threadfence();\n*flag = b + 1; }",
    ),
    "volatile sums of the sample": Body(
        "volatile float* out = parts;\nif (threadIdx.x == 0) { out[blockIdx.x] = x[blockIdx.x];\n"
        "__threadfence();\nif (atomicInc(count, gridDim.x) == gridDim.x - 1) { float s = 0;\n"
        "for (int i = 0; i < 8; ++i) s += out[i]; y[0] = s; } }"
    ),
    "blocks that write the same": Body("y[threadIdx.x] = x[threadIdx.x];"),
    "blocks that write the same and read it": Body(
        "parts[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
        "y[blockIdx.x] = parts[31 - threadIdx.x + threadIdx.x];"
    ),
    "halves of one word": Body("halves[blockIdx.x] = blockIdx.x; y[threadIdx.x] = 1;"),
    "another launch on the same scratch": Body(
        "if (blockIdx.x == 0) parts[threadIdx.x] = parts[threadIdx.x] + parts[threadIdx.x + 32];\n"
        "y[threadIdx.x] = 1;",
        before="parts[threadIdx.x] = x[threadIdx.x];",
    ),
    "threads behind a barrier": Body(
        "parts[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
        "y[threadIdx.x] = parts[63 - threadIdx.x];",
        grid=1,
        block=64,
    ),
    "lanes behind __syncwarp": Body(
        "parts[threadIdx.x] = x[threadIdx.x];\n__syncwarp();\n"
        "y[threadIdx.x] = parts[31 - threadIdx.x];",
        grid=1,
    ),
}

MISTAKES = {
    "two blocks add to a word": Body(
        "if (threadIdx.x == 0)\ny[blockIdx.x / 2] += x[blockIdx.x];",
        ((2, 2),),
        before="y[threadIdx.x] = 0;",
    ),
    "two blocks write a word": Body("y[threadIdx.x] = x[threadIdx.x] + blockIdx.x;", ((1, 1),)),
    "a block reads what another writes": Body(
        "parts[blockIdx.x] = x[blockIdx.x];\ny[blockIdx.x] = parts[(blockIdx.x + 7) % 8];",
        ((1, 2),),
        buffer="parts",
    ),
    "an early block reads what a later one writes": Body(
        "parts[blockIdx.x] = x[blockIdx.x + 8];\ny[blockIdx.x] = parts[(blockIdx.x + 1) % 8];",
        ((1, 2),),
        buffer="parts",
        before="parts[threadIdx.x] = 0;",
    ),
    "the last block, without a fence": Body(LAST_BLOCK.replace("{fence}", ""), ((2, 7),), "parts"),
    "zeros beside atomics": Body(
        "if (threadIdx.x == 0) y[0] = 0;\natomicAdd(&y[0], 1.f);", ((1, 2),), grid=2, block=1
    ),
    "a lock that is given back too early": Body(
        "if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1)) __nanosleep(10);\n"
        "atomicExch(lock, 0);\ny[0] += x[blockIdx.x]; }",
        ((3, 3),),
        before="y[threadIdx.x] = 0;",
    ),
    "threads add to a word": Body(
        "y[0] += x[threadIdx.x];", ((1, 1),), grid=1, before="y[threadIdx.x] = 0;"
    ),
    "threads with no barrier": Body(
        "parts[threadIdx.x] = x[threadIdx.x];\ny[threadIdx.x] = parts[63 - threadIdx.x];",
        ((1, 2),),
        buffer="parts",
        grid=1,
        block=64,
    ),
}


def looked(machine: Machine, body: Body, schedule: str) -> AccessReport:
    case = body.case
    return examine(
        machine.workshop,
        machine.built(case, EmulatedVariant.ACCESS),
        case.call,
        limits=LIMITS,
        timeout_s=TIMEOUT_S,
        schedule=schedule,
        writers=True,
    )


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_no_race(machine: Machine, name: str) -> None:
    waits = "waits for" in name
    for schedule in ("order",) if waits else ("order", "reverse", "random:3"):
        found = looked(machine, MEANT[name], schedule).races
        assert found == (), [race.sentence for race in found]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_race_is_told_with_both_lines(machine: Machine, name: str) -> None:
    body = MISTAKES[name]
    for schedule in ("order", "reverse", "random:3"):
        found = looked(machine, body, schedule).races
        assert {race.lines for race in found} >= set(body.lines), schedule
        assert {race.buffer for race in found} == {body.buffer}
        words = "no atomic orders them" if body.grid > 1 else "with no barrier between them"
        assert any(words in race.sentence for race in found)


def test_a_plain_read_beside_atomics_is_told_apart(machine: Machine) -> None:
    report = looked(machine, MEANT["a look before an atomic"], "order")
    assert report.races == ()
    assert {race.lines for race in report.weak_races} == {(2, 2)}


def test_the_last_writer_of_an_element_is_known(machine: Machine) -> None:
    body = Body(
        "const int i = blockIdx.x * 32 + threadIdx.x;\nif (i < 60)\ny[i] = x[i];\n"
        "if (i == 40)\ny[i] = 7;",
        grid=2,
    )
    writers = looked(machine, body, "order").writers
    assert writers is not None
    plain, again = writers.find_writer("y", 39), writers.find_writer("y", 40)
    assert plain is not None
    assert again is not None
    assert (plain.line, plain.kernel, plain.block, plain.thread) == (3, "k", (1, 0, 0), (7, 0, 0))
    assert again.line == 5
    assert writers.find_writer("y", 63) is None
    assert writers.find_nearest("y", 63) == 59


def test_what_a_kernel_adds_to_must_have_been_written(machine: Machine) -> None:
    body = Body("atomicAdd(&y[threadIdx.x], 1.f);\nparts[threadIdx.x] = parts[threadIdx.x] + 1;")
    report = looked(machine, replace(body, grid=1), "order")
    assert [one.sentence for one in report.unset] == [
        "line 1 adds to y, which nothing has written before",
        "line 2 reads parts, which nothing has written before",
    ]
    cleared = replace(body, grid=1, before="y[threadIdx.x] = 0; parts[threadIdx.x] = 0;")
    assert looked(machine, cleared, "order").unset == ()


def test_a_lane_that_takes_no_part_is_told(machine: Machine) -> None:
    body = Body(
        "float v = x[threadIdx.x];\nv = __shfl_xor_sync(~0u, v, 16);\ny[threadIdx.x] = v;",
        grid=1,
        block=20,
    )
    (missing,) = looked(machine, body, "order").missing
    assert (missing.line, missing.thread, missing.lane) == (2, 4, 20)
