// SPDX-License-Identifier: Apache-2.0
// A tensor-core product in inline PTX, in the style that public kernels for sm_80 are written in:
// C (m x n, float) = A (m x k, half, by rows) B (k x n, half, by rows). Tiles of 64 x 64 x 32 go through
// two stages of shared memory by cp.async; each of four warps multiplies 32 x 32 of them.
#include <cuda_fp16.h>
#include <stdint.h>

#define CP_ASYNC_CG(dst, src, bytes)                                                   \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst),      \
               "l"(src), "n"(bytes))
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT_GROUP(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                              \
  asm volatile(                                                                        \
      "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n"             \
      : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                                         \
      : "r"(addr))
#define LDMATRIX_X2_T(R0, R1, addr)                                                    \
  asm volatile("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%0, %1}, [%2];\n"      \
               : "=r"(R0), "=r"(R1)                                                    \
               : "r"(addr))

constexpr int TILE = 64, DEPTH = 32, PAD = 8;

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(128)
gemm(const half* __restrict__ A, const half* __restrict__ B, float* __restrict__ C, int m, int n, int k) {
  __shared__ half As[2][TILE][DEPTH + PAD];
  __shared__ half Bs[2][DEPTH][TILE + PAD];
  const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;
  const int warp_m = (warp & 1) * 32, warp_n = (warp >> 1) * 32;
  float acc[2][4][4] = {};

  auto load = [&](int stage, int k0) {
    for (int i = tid; i < TILE * DEPTH / 8; i += 128) {
      const int row = i / (DEPTH / 8), column = i % (DEPTH / 8) * 8;
      uint32_t to = (uint32_t)__cvta_generic_to_shared(&As[stage][row][column]);
      CP_ASYNC_CG(to, A + (size_t)(row0 + row) * k + k0 + column, 16);
    }
    for (int i = tid; i < DEPTH * TILE / 8; i += 128) {
      const int row = i / (TILE / 8), column = i % (TILE / 8) * 8;
      uint32_t to = (uint32_t)__cvta_generic_to_shared(&Bs[stage][row][column]);
      CP_ASYNC_CG(to, B + (size_t)(k0 + row) * n + column0 + column, 16);
    }
    CP_ASYNC_COMMIT_GROUP();
  };

  load(0, 0);
  const int steps = k / DEPTH;
  for (int step = 0; step < steps; ++step) {
    const int stage = step & 1;
    if (step + 1 < steps) {
      load(stage ^ 1, (step + 1) * DEPTH);
      CP_ASYNC_WAIT_GROUP(1);
    } else {
      CP_ASYNC_WAIT_GROUP(0);
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < DEPTH; kk += 16) {
      uint32_t a[2][4], b[4][2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        uint32_t at = (uint32_t)__cvta_generic_to_shared(
            &As[stage][warp_m + i * 16 + lane % 16][kk + lane / 16 * 8]);
        LDMATRIX_X4(a[i][0], a[i][1], a[i][2], a[i][3], at);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t at = (uint32_t)__cvta_generic_to_shared(
            &Bs[stage][kk + lane % 16][warp_n + j * 8]);
        LDMATRIX_X2_T(b[j][0], b[j][1], at);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma_m16n8k16(acc[i][j], a[i], b[j]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + warp_m + i * 16 + lane / 4;
      const int column = column0 + warp_n + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(&C[(size_t)row * n + column]) = make_float2(acc[i][j][0], acc[i][j][1]);
      *reinterpret_cast<float2*>(&C[(size_t)(row + 8) * n + column]) = make_float2(acc[i][j][2], acc[i][j][3]);
    }
}
