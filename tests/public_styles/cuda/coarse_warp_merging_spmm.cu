/*---
[knobs]
CF = 2
TILE = 32

[[launch]]
kernel = "spmm_cwm<4>"
when = "N >= 64"
grid = ["cdiv(M, 4)", "cdiv(N, 32 * CF)"]
block = [32, 4]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]

[[launch]]
kernel = "spmm_simple"
when = "N < 64"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]
---*/
// Style: GE-SpMM's coarse-grained warp merging, two columns of each thread.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define CF 2
#define TILE 32
#define CUDA_CHECK(func)                                                        \
  do {                                                                          \
    cudaError_t status = (func);                                                \
    if (status != cudaSuccess) {                                                \
      printf("CUDA error at line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
      exit(EXIT_FAILURE);                                                       \
    }                                                                           \
  } while (0)

template <uint ROWS>
__global__ void spmm_cwm(int m, int n, const int *indptr, const int *indices, const float *values,
                         const float *B, float *C) {
  __shared__ uint cols[ROWS][TILE];
  __shared__ float weights[ROWS][TILE];
  uint row = blockIdx.x * ROWS + threadIdx.y;
  if (row >= m) return;
  uint first = blockIdx.y * TILE * CF + threadIdx.x;
  int begin = indptr[row], end = indptr[row + 1];
  float acc[CF] = {0.f};
  for (int base = begin; base < end; base += TILE) {
    int at = base + threadIdx.x;
    if (at < end) {
      cols[threadIdx.y][threadIdx.x] = indices[at];
      weights[threadIdx.y][threadIdx.x] = values[at];
    }
    __syncwarp();
    int count = min(end - base, TILE);
    for (int j = 0; j < count; ++j) {
      const float *from = B + (int64_t)cols[threadIdx.y][j] * n;
      float w = weights[threadIdx.y][j];
#pragma unroll
      for (int c = 0; c < CF; ++c) {
        if (first + c * TILE < n) acc[c] += w * from[first + c * TILE];
      }
    }
    __syncwarp();
  }
#pragma unroll
  for (int c = 0; c < CF; ++c) {
    if (first + c * TILE < n) C[(int64_t)row * n + first + c * TILE] = acc[c];
  }
}

extern "C" __global__ void spmm_simple(int m, int n, const int *indptr, const int *indices,
                                       const float *values, const float *B, float *C) {
  int64_t gid = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (gid >= (int64_t)m * n) return;
  int row = gid / n, col = gid % n;
  float acc = 0;
  for (int p = indptr[row]; p < indptr[row + 1]; ++p)
    acc += values[p] * B[(int64_t)indices[p] * n + col];
  C[gid] = acc;
}
