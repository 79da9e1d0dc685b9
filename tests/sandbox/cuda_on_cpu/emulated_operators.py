"""CUDA sources of operators that are right, each with a call and the answer that numpy gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from emulation import Case, Step


class Right(NamedTuple):
    """A case, and what its outputs must be."""

    case: Case
    expected: dict[str, np.ndarray]
    tolerance: float = 0.0


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


SPMM = """
extern "C" __global__ void spmm(int m, int n, const int* __restrict__ indptr,
                                const int* __restrict__ indices,
                                const float* __restrict__ values, const float* __restrict__ B,
                                float* __restrict__ C) {
  __shared__ int columns[32];
  __shared__ float kept[32];
  int row = blockIdx.x, column = blockIdx.y * 32 + threadIdx.x;
  int end = indptr[row + 1];
  float sum = 0.0f;
  for (int start = indptr[row]; start < end; start += 32) {
    if (start + threadIdx.x < end) {
      columns[threadIdx.x] = indices[start + threadIdx.x];
      kept[threadIdx.x] = values[start + threadIdx.x];
    }
    __syncwarp();
    for (int k = 0; k < 32 && start + k < end; ++k) sum += kept[k] * B[columns[k] * n + column];
    __syncwarp();
  }
  if (row < m) C[row * n + column] = sum;
}
"""


def spmm(rows: int = 50, columns: int = 64) -> Right:
    rng = np.random.default_rng(1)
    degrees = rng.integers(0, 70, rows)
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    indices = rng.integers(0, rows, indptr[-1]).astype(np.int32)
    values, B = random(int(indptr[-1])), random(rows, columns)
    dense = np.zeros((rows, rows))
    for row in range(rows):
        np.add.at(
            dense[row],
            indices[indptr[row] : indptr[row + 1]],
            values[indptr[row] : indptr[row + 1]],
        )
    arguments = (rows, columns, "indptr", "indices", "values", "B", "C")
    case = Case(
        SPMM,
        ("spmm",),
        {"indptr": indptr, "indices": indices, "values": values, "B": B},
        {"C": ("float32", (rows, columns))},
        (Step((rows, columns // 32), 32, arguments),),
    )
    return Right(case, {"C": dense @ B.astype(np.float64)}, 1e-4)


SGEMM = """
#define TILE 16
__global__ void __launch_bounds__(TILE * TILE) sgemm(int n, const float* A, const float* B,
                                                     float* C) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE + 1];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int k = 0; k < n; k += TILE) {
    As[y][x] = A[row * n + k + x];
    Bs[y][x] = B[(k + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum += As[y][i] * Bs[i][x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}
"""


def sgemm(source: str = SGEMM, n: int = 64) -> Right:
    A, B = random(n, n), random(n, n, seed=1)
    case = Case(
        source,
        ("sgemm",),
        {"A": A, "B": B},
        {"C": ("float32", (n, n))},
        (Step((n // 16, n // 16), (16, 16), (n, "A", "B", "C")),),
    )
    return Right(case, {"C": A.astype(np.float64) @ B}, 1e-4)


REDUCE = """
template <typename T, int N>
__global__ void reduce(int n, const T* __restrict__ x, T* y) {
  __shared__ T part[N / 32];
  T sum = 0;
  for (int i = blockIdx.x * N + threadIdx.x; i < n; i += gridDim.x * N) sum += x[i];
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(0xffffffff, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < N / 32 ? part[threadIdx.x] : T(0);
    for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
    if (threadIdx.x == 0) atomicAdd(y, sum);
  }
}
"""


def reduction(dtype: str = "float") -> Right:
    x = np.arange(5000, dtype="float32" if dtype == "float" else "float64") % 7
    case = Case(
        REDUCE,
        (f"reduce<{dtype}, 128>",),
        {"x": x},
        {"y": (str(x.dtype), (1,))},
        (
            Step(arguments=("y", x.itemsize), zero=True),
            Step(4, 128, (5000, "x", "y")),
        ),
    )
    return Right(case, {"y": np.array([x.sum()])})


SOFTMAX = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void softmax(int n, const float* x, float* y) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  int row = block.group_index().x * tile.meta_group_size() + tile.meta_group_rank();
  float top = -INFINITY, sum = 0;
  for (int i = tile.thread_rank(); i < n; i += tile.size()) top = fmaxf(top, x[row * n + i]);
  top = cg::reduce(tile, top, cg::greater<float>());
  for (int i = tile.thread_rank(); i < n; i += tile.size()) sum += __expf(x[row * n + i] - top);
  for (int o = tile.size() / 2; o; o /= 2) sum += tile.shfl_xor(sum, o);
  tile.sync();
  for (int i = tile.thread_rank(); i < n; i += tile.size())
    y[row * n + i] = __fdividef(__expf(x[row * n + i] - top), sum);
}
"""


def softmax() -> Right:
    x = random(16, 100)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    case = Case(
        SOFTMAX,
        ("softmax",),
        {"x": x},
        {"y": ("float32", x.shape)},
        (Step(4, 64, (100, "x", "y")),),
    )
    return Right(case, {"y": e / e.sum(1, keepdims=True)}, 1e-6)


AXPY = """
#include <cuda_fp16.h>
__constant__ float one[4] = {1.f, 1.f, 1.f, 1.f};
__device__ __forceinline__ float4 fma4(float a, float4 x, float4 y) {
  return make_float4(fmaf(a, x.x, y.x), fmaf(a, x.y, y.y), fmaf(a, x.z, y.z), fmaf(a, x.w, y.w));
}
extern "C" __global__ void axpy(int n, float a, const float4* x, const float4* y, float4* z,
                                const half2* h, half2* g) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 4) return;
  float4 sum = fma4(a * one[i & 3], __ldg(x + i), y[i]);
  __stcs(&z[i], sum);
  g[i] = __hfma2(h[i], __float2half2_rn(2.0f), __halves2half2(__low2half(h[i]), __half(1)));
}
"""


def axpy() -> Right:
    x, y = random(1024), random(1024, seed=1)
    h = random(512, seed=2).astype(np.float16)
    wide = h.astype(np.float32).reshape(-1, 2)
    low = wide * 2 + np.stack([wide[:, 0], np.ones(len(wide), np.float32)], axis=1)
    case = Case(
        AXPY,
        ("axpy",),
        {"x": x, "y": y, "h": h.view(np.int16)},
        {"z": ("float32", (1024,)), "g": ("float16", (512,))},
        (Step(3, 96, (1024, 2.5, "x", "y", "z", "h", "g")),),
    )
    return Right(
        case, {"z": 2.5 * x.astype(np.float64) + y, "g": low.ravel().astype(np.float16)}, 1e-6
    )


HISTOGRAM = """
extern __shared__ unsigned counts[];
__global__ void histogram(int n, int bins, const int* x, int* y) {
  for (int i = threadIdx.x; i < bins; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x) atomicAdd(y + i, int(counts[i]));
}
"""


def histogram() -> Right:
    x = np.random.default_rng(3).integers(0, 50, 3000).astype(np.int32)
    case = Case(
        HISTOGRAM,
        ("histogram",),
        {"x": x},
        {"y": ("int32", (50,))},
        (
            Step(arguments=("y", 200), zero=True),
            Step(5, 64, (3000, 50, "x", "y"), shared_bytes=200),
        ),
    )
    return Right(case, {"y": np.bincount(x, minlength=50)})
