/*---
[knobs]
THREADS = 256

[[launch]]
kernel = "bias_gelu_vec4"
when = "N % 4 == 0"
grid = ["min(2048, cdiv(M * N, 4 * THREADS))"]
block = ["THREADS"]
args = ["x", "bias", "y", "M * N // 4", "N // 4"]

[[launch]]
kernel = "bias_gelu"
when = "N % 4 != 0"
grid = ["min(2048, cdiv(M * N, THREADS))"]
block = ["THREADS"]
args = ["x", "bias", "y", "M * N", "N"]
---*/
// Style: fused epilogues of transformer libraries: float4 where a row allows it, grid-stride loops.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cmath>
#include <cstdint>

using VecT = float4;
constexpr float kBeta = M_SQRT2 * M_2_SQRTPI * 0.5;
constexpr float kKappa = 0.044715f;

template <typename T>
__device__ __forceinline__ T gelu_tanh(T s) {
  const T inner = static_cast<T>(kBeta) * (s + static_cast<T>(kKappa) * s * s * s);
  return static_cast<T>(0.5) * s * (static_cast<T>(1) + std::tanh(inner));
}

extern "C" __global__ void bias_gelu_vec4(const VecT* __restrict__ x, const VecT* __restrict__ bias,
                                          VecT* __restrict__ y, int64_t n, int columns) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step) {
    const VecT v = x[i], b = __ldg(&bias[i % columns]);
    y[i] = {gelu_tanh(v.x + b.x), gelu_tanh(v.y + b.y), gelu_tanh(v.z + b.z), gelu_tanh(v.w + b.w)};
  }
}

extern "C" __global__ void bias_gelu(const float* __restrict__ x, const float* __restrict__ bias,
                                     float* __restrict__ y, int64_t n, int columns) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += step)
    y[i] = gelu_tanh(x[i] + bias[i % columns]);
}
