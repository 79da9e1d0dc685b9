"""Shared memory in every form that CUDA code declares it, as text."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import Case, Machine, Step
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.sandbox.builders.cuda_source import blank_out, rewrite

FORMS = """
template <typename T, int N> struct Pair { T a[N]; T b; };
namespace deep { extern "C++" {
extern __shared__ __align__(16) unsigned char whole[];
template <int ROWS>
__device__ float sum_of(int t) {
  static __shared__ float tile[ROWS][32 + 1], *first;
  volatile __shared__ int flag, more[3];
  __shared__ Pair<float, 4> pairs[3];
  __shared__ struct { float a; int b, c; } unnamed;
  alignas(16) __shared__ float before[4];
  __shared__ __align__(16) float after[4];  // not [5]; nor this: __shared__ int x;
  __shared__ union {
    float f[4];  int i[4];
  } both;
  extern __shared__ float4 wide[];
  if (t == 0) {
    first = &tile[1][2]; flag = 1; more[2] = 2; pairs[1].b = 3; unnamed.c = 4; before[3] = 5;
    after[1] = 6; both.i[1] = 7; *first = 8; wide[1].y = 9;
  }
  __syncthreads();
  int seven = both.i[1];
  float nine = reinterpret_cast<float*>(&whole)[5];
  return flag + more[2] + pairs[1].b + unnamed.c + before[3] + after[1] + seven + tile[1][2] + nine
    + (sizeof(tile) == ROWS * 33 * 4 ? 100 : 0) + (sizeof(pairs) == 60 ? 1000 : 0);
}
}}
__global__ void k(float* y) {
  const char* text = "__shared__ {"; char quote = '"'; int thousand = 1'000;
  y[threadIdx.x] = deep::sum_of<2>(threadIdx.x) + (text[2] == 's') + (quote == 34) + thousand;
}
"""


def test_every_form_is_one_variable_of_the_block(machine: Machine) -> None:
    case = Case(FORMS, ("k",), {}, {"y": ("float32", (64,))}, (Step(2, 64, ("y",), 32),))
    np.testing.assert_array_equal(machine.run(case)["y"], np.full(64, 45 + 1100 + 2 + 1000))


def test_lines_stay_where_they_are() -> None:
    inside = FORMS[FORMS.index("template <int ROWS>") :]
    assert rewrite(inside).text.count("\n") == inside.count("\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("#define S \\\n  __shared__ float a", "line 2: __shared__ inside a macro"),
        (
            "void f() {\n__shared__ float (*p)[3]; }",
            "line 2: a __shared__ declaration with no name",
        ),
        ("void f() { extern __shared__ float4 x; }", "extern that is not one array without a size"),
        ("void f() { __shared__ float a[3", "a __shared__ declaration with no end"),
        ("__shared__", "a __shared__ declaration with no end"),
    ],
)
def test_what_is_not_understood_is_said(source: str, reason: str) -> None:
    (found,) = rewrite(source).reasons
    assert reason in found


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("\n#ifdef __SSE2__\n#endif", "line 2: a condition on __SSE2__"),
        ("#if defined(__CUDA_ARCH__) && \\\n !defined __GNUC__\n#endif", "on __GNUC__"),
        ('#if __has_include("a.h")\n#endif', "on __has_include"),
        ("#ifdef INT_MAX\n#endif\n#ifndef FLT_MAX\nint x;\n#define FLT_MAX 1\n#endif", ""),
        ("#ifdef RAND_MAX\n#endif", "on RAND_MAX"),
        ("#ifndef LDBL_MAX\nint x;\n#define LDBL_MAX 1\n#endif", "on LDBL_MAX"),
        ("#ifndef _BLOCK\n#define _BLOCK 4\n#endif\n#if _BLOCK == 4\n#endif", ""),
        ("#ifdef A\n#elif CUDART_VERSION > 1\n#endif", "on CUDART_VERSION"),
        ("int x = kw::lane();", "names of this emulator"),
        ("#ifdef KW_ACCESS\n#endif", "names of this emulator"),
        ("#if __CUDA_ARCH__ >= 800 && defined(__CUDACC__)\n#endif", ""),
        ("#ifndef M_PI\n#define M_PI 3.14\n#endif", ""),
        ("#define ROWS 4\n#if ROWS == 4 && FAST\n#endif\n#ifdef _MSC_VER\n#endif", ""),
        ("// #ifdef __SSE2__\n/*\n#ifdef __GNUC__\n*/", ""),
    ],
)
def test_what_two_compilers_may_answer_differently_is_not_emulated(
    source: str, reason: str
) -> None:
    reasons = rewrite(source).reasons
    assert bool(reasons) is bool(reason), reasons
    assert any(reason in one for one in reasons) or not reason


PIECES = [*"/*\"'\\\n;{}()[]<>,= #a", "__shared__", "extern", 'R"(']


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_has_an_answer(source: str) -> None:
    assert len(blank_out(source)) == len(source)
    assert blank_out(source).count("\n") == source.count("\n")
    found = rewrite(source)
    assert found.text or found.reasons or not source
