"""CUDA sources that use what the emulation has of the language, each right, with its answer."""

from __future__ import annotations

import numpy as np
from emulated_operators import Right
from emulation import Case, Step

from kernelwright.sandbox.plan.model import Scratch

WMMA = """
#include <mma.h>
using namespace nvcuda;
__global__ void product(int n, const half* A, const half* B, float* C) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(c, 0.0f);
  int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
  for (int k = 0; k < n; k += 16) {
    wmma::load_matrix_sync(a, A + row * n + k, n);
    wmma::load_matrix_sync(b, B + column * n + k, n);
    wmma::mma_sync(c, a, b, c);
  }
  for (int i = 0; i < c.num_elements; ++i) c.x[i] *= 2;
  wmma::store_matrix_sync(C + row * n + column, c, n, wmma::mem_row_major);
}
"""


def matrix_product() -> Right:
    rng = np.random.default_rng(4)
    A, B = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    case = Case(
        WMMA,
        ("product",),
        {"A": A.view(np.int16), "B": B.view(np.int16)},
        {"C": ("float32", (64, 64))},
        (Step((2, 4), (32, 2), (64, "A", "B", "C")),),
    )
    return Right(case, {"C": 2 * (A.astype(np.float64) @ B.astype(np.float64).T)})


WARPS = """
#include <cooperative_groups.h>
// One column of the answers for each operation.
__global__ void warps(int* y) {
  int t = threadIdx.x, lane = t & 31, *out = y + t * 20;
  out[0] = __shfl_sync(~0u, t, 3);
  out[1] = __shfl_up_sync(~0u, t, 2);
  out[2] = __shfl_xor_sync(~0u, t, 1, 8);
  out[3] = __shfl_down_sync(~0u, t, 3, 8);
  out[4] = (int)__ballot_sync(~0u, lane % 3 == 0);
  out[5] = __any_sync(~0u, lane == 7) + 2 * __all_sync(~0u, lane < 32);
  out[6] = (int)__match_any_sync(~0u, lane / 4);
  int is_all;
  out[7] = (int)__match_all_sync(~0u, 5, &is_all);
  out[8] = __reduce_add_sync(~0u, lane);
  out[9] = (int)__reduce_max_sync(0xffu << (lane & 24), (unsigned)t);
  out[10] = __syncthreads_count(lane < 5);
  out[11] = __syncthreads_or(t == 40) + 2 * __syncthreads_and(t < 63);
  out[12] = lane < 10 ? (int)__activemask() : -1;
  if (lane % 2) {
    auto odd = cooperative_groups::coalesced_threads();
    out[13] = (int)odd.size() * 100 + (int)odd.thread_rank();
  } else out[13] = 0;
  if (lane < 16) { out[14] = lane; __syncwarp(); } else { out[14] = -lane; __syncwarp(); }
  double wide = __shfl_sync(~0u, double(t) + 0.5, lane ^ 1);
  out[15] = int(wide * 2);
  out[16] = __popc(t) + __clz(t) + __ffs(t);
  out[17] = int(__brev(t) >> 26) + int(__byte_perm(0x11223344, 0x55667788, 0x7610) & 0xff);
  unsigned before = atomicInc((unsigned*)(y + 64 * 20), 99);
  out[18] = before < 64;
  atomicMax(y + 64 * 20 + 1, t);
  out[19] = __float2int_rn(2.5f) + __float_as_int(1.0f) % 7 + __mulhi(1 << 30, 12) + max(t, 40);
}
"""


def warps() -> Right:
    t = np.arange(64)
    lane, base = t & 31, t & 32
    columns = [
        base + 3,
        np.where(lane < 2, t, t - 2),
        t ^ 1,
        np.where(lane % 8 < 5, t + 3, t),
        np.full(64, sum(1 << i for i in range(32) if i % 3 == 0)),
        np.full(64, 3),
        0xF << (lane // 4 * 4),
        np.full(64, 0xFFFFFFFF),
        np.full(64, 496),
        t // 8 * 8 + 7,
        np.full(64, 10),
        np.full(64, 1),
        np.where(lane < 10, 0x3FF, -1),
        np.where(lane % 2 == 1, 1600 + lane // 2, 0),
        np.where(lane < 16, lane, -lane),
        2 * (t ^ 1) + 1,
        [bin(i).count("1") + (32 - int(i).bit_length()) + (int(i & -i).bit_length()) for i in t],
        [int(f"{i:06b}"[::-1], 2) + 0x44 for i in t],
        np.full(64, 1),
        2 + 0x3F800000 % 7 + 3 + np.maximum(t, 40),
    ]
    expected = np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1)
    flat = np.concatenate([expected.astype(np.uint32).view(np.int32).ravel(), [64, 63]])
    case = Case(
        WARPS,
        ("warps",),
        {},
        {"y": ("int32", (64 * 20 + 2,))},
        (Step(arguments=("y", (64 * 20 + 2) * 4), zero=True), Step(1, 64, ("y",))),
    )
    return Right(case, {"y": flat})


TWO_STEPS = """
__device__ int calls;
__global__ void partial(int n, const float* x, float* part) {
  __shared__ float s[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  for (int half = 32; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
  }
  if (threadIdx.x == 0) part[blockIdx.x] = s[0];
  if (i == 0) atomicAdd(&calls, 1);
}
__global__ void total(int blocks, const float* part, float* y) {
  float sum = 0;
  for (int i = 0; i < blocks; ++i) sum += part[i];
  *y = sum + calls;
}
"""


def two_steps() -> Right:
    x = np.arange(1000, dtype=np.float32)
    case = Case(
        TWO_STEPS,
        ("partial", "total"),
        {"x": x},
        {"y": ("float32", (1,))},
        (
            Step(16, 64, (1000, "x", "part")),
            Step(1, 1, (16, "part", "y"), kernel=1),
        ),
        (Scratch("part", "float32", (16,)),),
    )
    return Right(case, {"y": np.array([499501.0])})


IDIOMS = """
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda/std/limits>
#include <stdint.h>
namespace cg = cooperative_groups;
constexpr int TILE = 32;
#define CEIL(a, b) (((a) + (b) - 1) / (b))
enum class Mode : int { SUM, MAX };
struct __align__(8) Best { float value; int place; };
template <int WIDTH = 32, typename T, typename F>
static inline __device__ __forceinline__ T fold(T v, F f) {
#pragma unroll
  for (int o = WIDTH >> 1; o > 0; o >>= 1) v = f(v, __shfl_xor_sync(0xffffffffu, v, o, WIDTH));
  return v;
}
__device__ __noinline__ Best better(Best a, Best b) { return a.value >= b.value ? a : b; }
__device__ float4 operator+(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
template <Mode MODE, typename T>
__global__ __launch_bounds__(64, 2) void idioms(const int n, const T* const __restrict__ x,
                                                float* __restrict__ y) {
  __shared__ __align__(16) float stage[2][TILE];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const unsigned lane = threadIdx.x & 31u;
  const auto* wide = reinterpret_cast<const float4*>(x);
  if (lane < TILE / 4 && warp.meta_group_rank() < 2) {
    __pipeline_memcpy_async(&stage[warp.meta_group_rank()][lane * 4], wide + lane, sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  __syncthreads();
  auto pick = [&](int i) -> float { return stage[threadIdx.x / 32][i]; };
  float v = pick(lane);
  const float sum = fold(v, [](float a, float b) { return a + b; });
  const float top = fold<16>(v, [](float a, float b) { return max(a, b); });
  const __nv_bfloat16 rough = __float2bfloat16(v);
  const half2 pair = __floats2half2_rn(v, -v);
  Best best{-cuda::std::numeric_limits<float>::infinity(), -1};
  for (int i = 0; i < min(n, TILE); ++i) best = better(best, Best{pick(i), i});
  float4 four = __ldg(wide) + make_float4(1.f, 0.f, 0.f, 0.f);
  uint64_t bits = (uint64_t)__float_as_uint(v) << 32 | lane;
  if constexpr (MODE == Mode::SUM) four.x += 1;
  y[threadIdx.x * 8 + 0] = sum;
  y[threadIdx.x * 8 + 1] = top;
  const half none = __hadd(pair.x, pair.y);
  y[threadIdx.x * 8 + 2] = __bfloat162float(rough * __nv_bfloat16(2)) + float(none);
  y[threadIdx.x * 8 + 3] = best.value * 100 + best.place;
  y[threadIdx.x * 8 + 4] = four.x;
  y[threadIdx.x * 8 + 5] = (float)(bits & 0xff) + CEIL(n, 5) + rsqrtf(4.0f) + (sizeof(Best) == 8);
  y[threadIdx.x * 8 + 6] = warp.any(lane == 3) + 2 * (warp.shfl(lane, 5) == 5);
  y[threadIdx.x * 8 + 7] = lane == 0 ? fmaxf(NAN, 3.0f) : __saturatef(v * 1e9f);
}
"""


def idioms() -> Right:
    rng = np.random.default_rng(6)
    x = rng.integers(-40, 40, 32).astype(np.float32)
    lane = np.tile(np.arange(32), 2)
    v = np.tile(x, 2)
    halves = v.reshape(4, 16).max(1)
    columns = [
        np.full(64, x.sum()),
        np.repeat(halves, 16),
        2 * v,
        np.full(64, x.max() * 100 + x.argmax()),
        np.full(64, x[0] + 2),
        lane + 7 + 0.5 + 1,
        np.full(64, 3),
        np.where(lane == 0, 3, v > 0),
    ]
    case = Case(
        IDIOMS,
        ("idioms<Mode::SUM, float>",),
        {"x": x},
        {"y": ("float32", (64, 8))},
        (Step(1, 64, (32, "x", "y")),),
    )
    return Right(case, {"y": np.stack(columns, axis=1).astype(np.float32)})


ATOMIC_SUMS = """
extern "C" __global__ void sums(const float* x, float* y) {
  __shared__ float fixed;
  extern __shared__ float own[];
  float* at[3] = {y, &fixed, own};
  for (float* one : at) {
    *one = 0;
    for (int i = 0; i < 4; ++i) atomicAdd(one, x[i]);
  }
  y[1] = fixed;
  y[2] = own[0];
  y[3] = x[0];
  y[3] += x[1];
}
"""


def atomic_sums() -> Right:
    """Two denormals and two numbers whose sum is one: in global memory they come to nothing."""
    x = np.array([1e-40, 3e-40, 1.5e-38, -1.2e-38], np.float32)
    kept = np.float32(0)
    for one in x:
        kept += one
    case = Case(
        ATOMIC_SUMS,
        ("sums",),
        {"x": x},
        {"y": ("float32", (4,))},
        (Step(1, 1, ("x", "y"), shared_bytes=16),),
    )
    return Right(case, {"y": np.array([0, kept, kept, x[0] + x[1]], np.float32)})
