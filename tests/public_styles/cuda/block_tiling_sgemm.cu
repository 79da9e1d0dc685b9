/*---
[[launch]]
kernel = "sgemm2DBlocktiling<64, 64, 8, 8, 8>"
grid = ["cdiv(N, 64)", "cdiv(M, 64)"]
block = [64]
args = ["M", "N", "K", {f32 = 1.0}, "A", "B", {f32 = 0.0}, "C"]
---*/
// Style: the sgemm work-log, blocks and threads both tile in two dimensions; bounds are checked.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemm2DBlocktiling(int M, int N, int K, float alpha, const float *A, const float *B, float beta,
                       float *C) {
  const uint cRow = blockIdx.y;
  const uint cCol = blockIdx.x;
  const uint totalResultsBlocktile = BM * BN;
  const uint numThreadsBlocktile = totalResultsBlocktile / (TM * TN);
  assert(numThreadsBlocktile == blockDim.x);

  const int threadCol = threadIdx.x % (BN / TN);
  const int threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];

  const uint innerRowA = threadIdx.x / BK;
  const uint innerColA = threadIdx.x % BK;
  const uint strideA = numThreadsBlocktile / BK;
  const uint innerRowB = threadIdx.x / BN;
  const uint innerColB = threadIdx.x % BN;
  const uint strideB = numThreadsBlocktile / BN;

  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0};
  float regN[TN] = {0.0};

  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    for (uint loadOffset = 0; loadOffset < BM; loadOffset += strideA) {
      const uint row = cRow * BM + innerRowA + loadOffset, col = bkIdx + innerColA;
      As[(innerRowA + loadOffset) * BK + innerColA] = row < M && col < K ? A[row * K + col] : 0.0f;
    }
    for (uint loadOffset = 0; loadOffset < BK; loadOffset += strideB) {
      const uint row = bkIdx + innerRowB + loadOffset, col = cCol * BN + innerColB;
      Bs[(innerRowB + loadOffset) * BN + innerColB] = row < K && col < N ? B[row * N + col] : 0.0f;
    }
    __syncthreads();
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[(threadRow * TM + i) * BK + dotIdx];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint resIdxM = 0; resIdxM < TM; ++resIdxM) {
        for (uint resIdxN = 0; resIdxN < TN; ++resIdxN) {
          threadResults[resIdxM * TN + resIdxN] += regM[resIdxM] * regN[resIdxN];
        }
      }
    }
    __syncthreads();
  }
  for (uint resIdxM = 0; resIdxM < TM; ++resIdxM) {
    for (uint resIdxN = 0; resIdxN < TN; ++resIdxN) {
      const uint row = cRow * BM + threadRow * TM + resIdxM;
      const uint col = cCol * BN + threadCol * TN + resIdxN;
      if (row < M && col < N) {
        float *at = C + row * N + col;
        const float sum = alpha * threadResults[resIdxM * TN + resIdxN];
        *at = beta == 0.0f ? sum : sum + beta * *at;
      }
    }
  }
}
