/*---
[[launch]]
kernel = "serving::rms_norm_kernel<float, 4>"
when = "N % 4 == 0"
grid = ["M"]
block = ["min(1024, cdiv(cdiv(N, 4), 32) * 32)"]
args = ["y", "x", "gamma", {f32 = 1e-6}, "M", "N"]

[[launch]]
kernel = "serving::rms_norm_kernel<float, 1>"
when = "N % 4 != 0"
grid = ["M"]
block = ["min(1024, cdiv(N, 32) * 32)"]
args = ["y", "x", "gamma", {f32 = 1e-6}, "M", "N"]
---*/
// Style: the serving engines' RMS norm, one template over the scalar and the width of a load.
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <type_traits>

#ifndef USE_ROCM
#define SERVING_LDG(arg) __ldg(arg)
#define SERVING_SHFL_XOR_SYNC(var, mask) __shfl_xor_sync(uint32_t(-1), var, mask)
#else
#define SERVING_LDG(arg) *(arg)
#endif

namespace serving {

template <typename scalar_t, int width>
struct __align__(sizeof(scalar_t) * width) Vec {
  static_assert(width > 0 && (width & (width - 1)) == 0, "width is not a power of 2");
  static_assert(std::is_trivially_copyable_v<scalar_t>);
  scalar_t data[width];
};

template <typename T>
__inline__ __device__ T warpReduceSum(T val) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) val += SERVING_SHFL_XOR_SYNC(val, mask);
  return val;
}

template <typename T>
__inline__ __device__ T blockReduceSum(T val) {
  static __shared__ T shared[32];
  int lane = threadIdx.x & 0x1f;
  int wid = threadIdx.x >> 5;
  val = warpReduceSum(val);
  if (lane == 0) shared[wid] = val;
  __syncthreads();
  val = threadIdx.x < (blockDim.x / 32.f) ? shared[lane] : (T)(0.0f);
  val = warpReduceSum(val);
  return val;
}

template <typename scalar_t, int width>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input,
                                const scalar_t* __restrict__ weight, const float epsilon,
                                const int num_tokens, const int hidden_size) {
  using vec_t = Vec<scalar_t, width>;
  __shared__ float s_variance;
  float variance = 0.0f;
  const int vec_hidden_size = hidden_size / width;
  const auto* input_v =
      reinterpret_cast<const vec_t*>(input + blockIdx.x * static_cast<int64_t>(hidden_size));
  const auto* weight_v = reinterpret_cast<const vec_t*>(weight);
  auto* out_v = reinterpret_cast<vec_t*>(out + blockIdx.x * static_cast<int64_t>(hidden_size));

  for (int idx = threadIdx.x; idx < vec_hidden_size; idx += blockDim.x) {
    const vec_t v = input_v[idx];
#pragma unroll
    for (int i = 0; i < width; ++i) variance += (float)v.data[i] * (float)v.data[i];
  }
  variance = blockReduceSum<float>(variance);
  if (threadIdx.x == 0) {
    s_variance = rsqrtf(variance / hidden_size + epsilon);
  }
  __syncthreads();

  for (int idx = threadIdx.x; idx < vec_hidden_size; idx += blockDim.x) {
    vec_t v = input_v[idx];
    const vec_t w = weight_v[idx];
#pragma unroll
    for (int i = 0; i < width; ++i) {
      v.data[i] = ((scalar_t)((float)v.data[i] * s_variance)) * w.data[i];
    }
    out_v[idx] = v;
  }
}

}  // namespace serving
