/*---
[[launch]]
kernel = "gemm_pipelined<2>"
when = "K % 4 == 0 and N % 4 == 0"
grid = ["cdiv(N, 32)", "cdiv(M, 32)"]
block = [8, 32]
args = ["A", "B", "C", "M", "N", "K"]

[[launch]]
kernel = "gemm_plain"
when = "not (K % 4 == 0 and N % 4 == 0)"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
---*/
// Style: the programming guide's pipeline primitives: stages of shared memory, copies of 16 bytes.
#include <cuda_pipeline.h>
#include <cooperative_groups/memcpy_async.h>

template <int STAGES>
__global__ void gemm_pipelined(const float* __restrict__ A, const float* __restrict__ B,
                               float* __restrict__ C, int M, int N, int K) {
  constexpr int TILE = 32;
  __shared__ __align__(16) float a[STAGES][TILE][TILE];
  __shared__ __align__(16) float b[STAGES][TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y;
  const int quad = threadIdx.x * 4;
  const int column = blockIdx.x * TILE + quad;
  const int tiles = (K + TILE - 1) / TILE;

  auto fetch = [&](int stage, int tile) {
    const int k = tile * TILE;
    const bool has_a = row < M && k + quad < K;
    const bool has_b = k + int(threadIdx.y) < K && column < N;
    const float* from_a = has_a ? A + size_t(row) * K + k + quad : A;
    const float* from_b = has_b ? B + size_t(k + threadIdx.y) * N + column : B;
    __pipeline_memcpy_async(&a[stage][threadIdx.y][quad], from_a, 16, has_a ? 0 : 16);
    __pipeline_memcpy_async(&b[stage][threadIdx.y][quad], from_b, 16, has_b ? 0 : 16);
    __pipeline_commit();
  };

  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  fetch(0, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      fetch((tile + 1) % STAGES, tile + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    const int stage = tile % STAGES;
#pragma unroll
    for (int k = 0; k < TILE; ++k) {
      const float left = a[stage][threadIdx.y][k];
      const float4 right = *reinterpret_cast<const float4*>(&b[stage][k][quad]);
      sum.x = fmaf(left, right.x, sum.x);
      sum.y = fmaf(left, right.y, sum.y);
      sum.z = fmaf(left, right.z, sum.z);
      sum.w = fmaf(left, right.w, sum.w);
    }
    __syncthreads();
  }
  if (row < M && column < N) *reinterpret_cast<float4*>(&C[size_t(row) * N + column]) = sum;
}

__global__ void gemm_plain(const float* A, const float* B, float* C, int M, int N, int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += A[size_t(row) * K + k] * B[size_t(k) * N + column];
  C[size_t(row) * N + column] = sum;
}
