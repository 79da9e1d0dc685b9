"""Instructions of inline PTX do what the ISA says; what is not known is said with its line."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import Case, Machine, Step

from kernelwright.sandbox.builders.cuda_source import rewrite
from kernelwright.sandbox.builders.model import Unsupported

HEAD = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <stdint.h>
"""


def unsigned(value: int) -> int:
    return value & 0xFFFFFFFF


X, F = 0x12345678, 3.0
ANSWERS: dict[str, tuple[str, int | float]] = {
    # Of x (an int32) and f (a float): what statements leave in r (uint32), or in g (float).
    "add": ('asm("add.s32 %0, %1, -5;" : "=r"(r) : "r"(x));', X - 5),
    "mad": ('asm("mad.lo.u32 %0, %1, 3, %1;" : "=r"(r) : "r"(x));', unsigned(4 * X)),
    "mul.hi": ('asm("mul.hi.u32 %0, %1, 256;" : "=r"(r) : "r"(x));', 0x12),
    "wide": (
        'uint64_t w; asm("mul.wide.u32 %0, %1, %2;" : "=l"(w) : "r"(x), "r"(x)); r = w >> 32;',
        X * X >> 32,
    ),
    "lop3": (
        'asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(x), "n"(0x00f000f0), "r"(0x6400));',
        (X & 0x00F000F0) | 0x6400,
    ),
    "prmt": ('asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r) : "r"(x), "r"(~x));', 0xA9875678),
    "bfe": ('asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(x));', 0x67),
    "bfe signed": ('asm("bfe.s32 %0, %1, 4, 4;" : "=r"(r) : "r"(0x80));', unsigned(-8)),
    "bfi": ('asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(r) : "r"(0xf), "r"(x));', 0x12345F78),
    "shf": ('asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(r) : "r"(x), "r"(1));', 0x112),
    "shifts": (
        'asm("{ .reg .b32 t; shl.b32 t, %1, 4; shr.s32 %0, t, 36; }" : "=r"(r) : "r"(x));',
        0,
    ),
    "predicates": (
        'asm("{\\n .reg .pred p;\\n setp.lt.s32 p, %1, 7; // a comment\\n'
        ' mov.u32 %0, 1;\\n @!p mov.u32 %0, 2;\\n}" : "=r"(r) : "r"(x));',
        2,
    ),
    "selp": (
        'asm("{ .reg .pred p, q; setp.gt.f32 p, %2, 0f40000000; not.pred q, p; '
        'selp.b32 %0, 7, %1, p; }" : "=r"(r) : "r"(x), "f"(f));',
        7,
    ),
    "tied": ('r = 5; asm("add.u32 %0, %0, %1;" : "+r"(r) : "r"(x));', X + 5),
    "packed": (
        'unsigned short a = 1, b = 2; asm("mov.b32 %0, {%1, %2};" : "=r"(r) : "h"(a), "h"(b));',
        0x20001,
    ),
    "unpacked": (
        'unsigned short a, b; asm("mov.b32 {%0, %1}, %2;" : "=h"(a), "=h"(b) : "r"(x)); r = b;',
        0x1234,
    ),
    "tid": ('asm("mov.u32 %0, %%tid.x;" : "=r"(r));', 0),
    "lanes below": ('asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));', 0),
    "shuffle": (
        'asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %1, 1, 0x1f, 0xffffffff;'
        ' @!p mov.u32 %0, 0; }" : "=r"(r) : "r"(threadIdx.x + 40));',
        41,
    ),
    "vote": (
        'asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 3; vote.sync.ballot.b32 %0, p, '
        '0xffffffff; }" : "=r"(r) : "r"(threadIdx.x));',
        7,
    ),
    "redux": ('asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(2));', 64),
    "dp4a": (
        'asm("dp4a.u32.u32 %0, %1, %2, 1;" : "=r"(r) : "r"(0x01020304), "r"(0x01010101));',
        11,
    ),
    "f16x2": (
        'asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(1.0f), "f"(-2.0f));',
        0x3C00C000,
    ),
    "bf16x2 relu": (
        'asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(1.0f), "f"(-2.0f));',
        0x3F800000,
    ),
    "e4m3x2": (
        'unsigned short c; asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(c) '
        ': "f"(1.0f), "f"(1000.0f)); r = c;',
        0x387E,
    ),
    "from e4m3x2": (
        'unsigned short c = 0x387E; asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r) : "h"(c));',
        0x3C005F00,
    ),
    "tf32": (
        'asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__int_as_float(0x3f801000)));',
        0x3F802000,
    ),
    "tf32 even": (
        'asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(__int_as_float(0x3f801000)));',
        0x3F800000,
    ),
    "to int": ('asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(-2.9f));', unsigned(-2)),
    "clamped": ('asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(-7));', 0),
    "signed byte": ('asm("cvt.s32.s8 %0, %1;" : "=r"(r) : "r"(0xF0));', unsigned(-16)),
    "half2 fma": (
        'asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(r) : "r"(0x40003C00));',
        0x46004000,
    ),
    "fma": ('asm("fma.rn.f32 %0, %1, %1, 0f3F800000;" : "=f"(g) : "f"(f));', 10.0),
    "ex2": ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(g) : "f"(f));', 8.0),
    "rcp": ('asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(g) : "f"(4.0f));', 0.25),
    "max": ('asm("max.f32 %0, %1, %2;" : "=f"(g) : "f"(f), "f"(NAN));', 3.0),
    "two at once": (
        'uint64_t a; float2 p = make_float2(2, 3); asm("fma.rn.f32x2 %0, %1, %1, %1;" : "=l"(a) '
        ': "l"(*(uint64_t*)&p)); g = ((float2*)&a)->y;',
        12.0,
    ),
    "load": (
        'asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.f32 {%0, %1}, [%2 + 8];" '
        ': "=f"(g), "=f"(f) : "l"(data)); g += f;',
        5.0,
    ),
    "void": (
        'const void* at = data + 3; asm("ld.global.b32 %0, [%1];" : "=f"(g) : "l"(at));',
        3.0,
    ),
    "store to shared": (
        "__shared__ float s[4]; uint32_t at = __cvta_generic_to_shared(s); if (threadIdx.x == 0) "
        'asm volatile("st.shared.v4.f32 [%0], {%1, %1, %1, %2};" :: "r"(at), "f"(f), "f"(9.0f)); '
        '__syncwarp(); asm volatile("ld.shared.f32 %0, [%1+12];" : "=f"(g) : "r"(at));',
        9.0,
    ),
    "barrier and fence": (
        'asm volatile("membar.gl;" ::: "memory"); asm volatile("bar.sync 0;"); r = 1; '
        'asm volatile("" ::: "memory");',
        1,
    ),
    "atomic": (
        "__shared__ unsigned n; if (threadIdx.x == 0) n = 0; __syncthreads(); "
        'asm volatile("red.shared.add.u32 [%0], 2;" :: "r"((uint32_t)__cvta_generic_to_shared(&n)) '
        ': "memory"); __syncthreads(); r = n;',
        64,
    ),
    "zero fill": (
        "__shared__ __align__(16) float s[4]; if (threadIdx.x == 0) { "
        'asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: '
        '"r"((uint32_t)__cvta_generic_to_shared(s)), "l"(data), "r"(8)); '
        'asm volatile("cp.async.wait_all;" ::: "memory"); } '
        "__syncthreads(); g = s[0] + s[1] + s[2] + s[3];",
        1.0,
    ),
}


def case(body: str) -> Case:
    source = (
        f"{HEAD}__global__ void k(const float* data, int x, float f, int* y) {{\n"
        f"  uint32_t r = 0; float g = 0;\n  {body}\n"
        "  if (threadIdx.x == 0) y[0] = r, y[1] = __float_as_int(g);\n}\n"
    )
    data = np.arange(4, dtype=np.float32)
    return Case(
        source, ("k",), {"data": data}, {"y": ("int32", (2,))}, (Step(1, 32, ("data", X, F, "y")),)
    )


def test_instructions_have_their_answers(machine: Machine) -> None:
    """All in one kernel, which builds once."""
    blocks = [
        f"{{ uint32_t r = 0; float g = 0, f = f_; {body} if (threadIdx.x == 0) "
        f"y[{i}] = {'r' if isinstance(answer, int) else '__float_as_int(g)'}; }}"
        for i, (body, answer) in enumerate(ANSWERS.values())
    ]
    source = (
        f"{HEAD}__global__ void k(const float* data, int x, float f_, int* y) {{\n"
        + "\n".join(blocks)
        + "\n}\n"
    )
    given = {"data": np.arange(4, dtype=np.float32)}
    outputs = {"y": ("int32", (len(ANSWERS),))}
    whole = Case(source, ("k",), given, outputs, (Step(1, 32, ("data", X, F, "y")),))
    found = machine.run(whole)["y"]
    for value, (name, (_, answer)) in zip(found, ANSWERS.items(), strict=True):
        if isinstance(answer, int):
            assert unsigned(int(value)) == answer, name
        else:
            assert abs(value.view(np.float32) - answer) <= 1e-6 * answer, name


UNKNOWN = {
    'asm volatile("wgmma.fence.sync.aligned;");': "wgmma.fence.sync.aligned",
    'asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(x));': "mbarrier.init",
    'asm volatile("cp.async.bulk.commit_group;");': "cp.async.bulk.commit_group",
    'asm volatile("tcgen05.wait::ld.sync.aligned;");': "tcgen05.wait::ld.sync.aligned",
    'asm volatile("LOOP: bra LOOP;");': "LOOP:",
    'asm volatile("bar.sync 1, 64;");': "bar.sync of another barrier",
    'asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0}, {%0}, {%0}, {%0};" '
    ': "+f"(g));': "mma.sync.aligned.m8n8k4",
    'asm("add.s32 %0, %1, q;" : "=r"(r) : "r"(x));': "add.s32: the operand `q`",
    'asm("foo %0;" : "=r"(r));': "inline PTX: foo",
    'asm("mov.u32 %0, %1;" : "=r"(r) : "0"(x));': "the constraint 0",
}


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_is_not_known_is_told_with_line_and_name(machine: Machine, body: str) -> None:
    found = machine.attempt(case(body))
    assert isinstance(found, Unsupported)
    assert found.reasons[0].startswith("line 7: inline PTX: "), found.reasons
    assert UNKNOWN[body] in found.reasons[0]


def test_what_the_preprocessor_leaves_out_is_not_asked(machine: Machine) -> None:
    body = """
#define ELECT asm volatile("elect.sync _|p, 0xffffffff;")
#if __CUDA_ARCH__ >= 900
  asm volatile("wgmma.fence.sync.aligned;");
#else
  asm("mov.u32 %0, 3;" : "=r"(r));
#endif"""
    assert machine.run(case(body))["y"][0] == 3


def test_lines_stay_where_they_are() -> None:
    source = '#define A(x) \\\n asm("mov.u32 %0,"   \\\n  " 1;" \\\n : "=r"(x))\n'
    source += 'asm(\n"bar.sync 0;"\n);\n'
    found = rewrite(source).text
    assert found.count("\n") == source.count("\n")
    assert found.splitlines()[1].endswith("\\")
    assert "asm" not in found


def test_a_shared_address_elsewhere_is_told(machine: Machine) -> None:
    fault = machine.fault(case("r = __cvta_generic_to_shared(data);"))
    assert "line 7: an address outside shared memory" in fault.reason


def test_lanes_that_are_missing_in_a_product_are_told(machine: Machine) -> None:
    body = (
        "if (threadIdx.x == 9) return;\n"
        'asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %0, %0, %0}, '
        '{%1, %1}, {%1}, {%0, %0, %0, %0};" : "+f"(g) : "r"(x));'
    )
    assert "line 8: a matrix instruction in a warp of which" in machine.fault(case(body)).reason
