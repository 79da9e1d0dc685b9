/*---
[[launch]]
kernel = "softmax_base2"
grid = ["cdiv(M, 4)"]
block = [32, 4]
args = ["x", "y", "M", "N"]
---*/
// Style: attention kernels' exponentials to base two, with the logarithm folded into one product.
#include <cuda_fp16.h>

__device__ __forceinline__ float exp2_approx(float x) { return exp2f(x); }

extern "C" __global__ void softmax_base2(const float* __restrict__ x, float* __restrict__ y, int rows,
                                         int n) {
  constexpr float kLog2e = float(M_LOG2E);
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  x += size_t(row) * n;
  y += size_t(row) * n;
  float row_max = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32) row_max = fmaxf(row_max, x[i]);
#pragma unroll
  for (int w = 16; w; w /= 2) row_max = fmaxf(row_max, __shfl_xor_sync(uint32_t(-1), row_max, w));
  const float scaled = row_max * kLog2e;
  float row_sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 32) row_sum += exp2_approx(x[i] * kLog2e - scaled);
#pragma unroll
  for (int w = 16; w; w /= 2) row_sum += __shfl_xor_sync(uint32_t(-1), row_sum, w);
  for (int i = threadIdx.x; i < n; i += 32) y[i] = exp2_approx(x[i] * kLog2e - scaled) / row_sum;
}
