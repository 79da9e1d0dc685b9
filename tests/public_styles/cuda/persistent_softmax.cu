/*---
[[launch]]
kernel = "softmax_warp_forward<float, float, float, 8>"
when = "N <= 256"
grid = ["cdiv(M, 8)"]
block = [32, 4]
args = ["y", "x", "M", "N", "N"]

[[launch]]
kernel = "softmax_warp_forward<float, float, float, 10>"
when = "N > 256 and N <= 1024"
grid = ["cdiv(M, 8)"]
block = [32, 4]
args = ["y", "x", "M", "N", "N"]

[[launch]]
kernel = "softmax_block_forward<4, float>"
when = "N > 1024"
grid = ["M"]
block = [1024]
shared_bytes = "32 * 4"
args = ["y", "x", "N"]
---*/
// Style: ATen's softmax. Rows of up to 1024 elements stay in the registers of a warp.
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <c10/macros/Macros.h>
#include <cfloat>
#include <limits>
#include <stdint.h>

#define C10_WARP_SIZE 32

template <typename T>
struct Add {
  __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct Max {
  __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};

template <typename acc_t, int WARP_BATCH, int WARP_SIZE, template <typename> class ReduceOp>
__device__ __forceinline__ void warp_reduce(acc_t* sum) {
  ReduceOp<acc_t> r;
#pragma unroll
  for (int offset = WARP_SIZE / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int i = 0; i < WARP_BATCH; ++i) {
      acc_t b = __shfl_xor_sync(0xffffffff, sum[i], offset, WARP_SIZE);
      sum[i] = r(sum[i], b);
    }
  }
}

template <typename input_t, typename output_t, typename acc_t, int log2_elements>
__global__ void softmax_warp_forward(output_t* dst, const input_t* src, int batch_size, int stride,
                                     int element_count) {
  constexpr int next_power_of_two = 1 << log2_elements;
  constexpr int WARP_SIZE = (next_power_of_two < C10_WARP_SIZE) ? next_power_of_two : C10_WARP_SIZE;
  constexpr int WARP_ITERATIONS = next_power_of_two / WARP_SIZE;
  constexpr int WARP_BATCH = 2;

  int64_t first_batch = (blockDim.y * static_cast<int64_t>(blockIdx.x) + threadIdx.y) * WARP_BATCH;
  int local_batches = batch_size - first_batch;
  if (local_batches > WARP_BATCH) local_batches = WARP_BATCH;
  int local_idx = threadIdx.x;
  src += first_batch * stride + local_idx;
  dst += first_batch * stride + local_idx;

  acc_t elements[WARP_BATCH][WARP_ITERATIONS];
  for (int i = 0; i < WARP_BATCH; ++i) {
    int batch_element_count = (i >= local_batches) ? 0 : element_count;
    for (int it = 0; it < WARP_ITERATIONS; ++it) {
      int element_index = local_idx + it * WARP_SIZE;
      if (element_index < batch_element_count) {
        elements[i][it] = src[i * (int64_t)element_count + it * WARP_SIZE];
      } else {
        elements[i][it] = -std::numeric_limits<acc_t>::infinity();
      }
    }
  }

  acc_t max_value[WARP_BATCH];
#pragma unroll
  for (int i = 0; i < WARP_BATCH; ++i) {
    max_value[i] = elements[i][0];
#pragma unroll
    for (int it = 1; it < WARP_ITERATIONS; ++it) {
      max_value[i] = (max_value[i] > elements[i][it]) ? max_value[i] : elements[i][it];
    }
  }
  warp_reduce<acc_t, WARP_BATCH, WARP_SIZE, Max>(max_value);

  acc_t sum[WARP_BATCH]{0.0f};
#pragma unroll
  for (int i = 0; i < WARP_BATCH; ++i) {
#pragma unroll
    for (int it = 0; it < WARP_ITERATIONS; ++it) {
      elements[i][it] = std::exp(elements[i][it] - max_value[i]);
      sum[i] += elements[i][it];
    }
  }
  warp_reduce<acc_t, WARP_BATCH, WARP_SIZE, Add>(sum);

#pragma unroll
  for (int i = 0; i < WARP_BATCH; ++i) {
    if (i >= local_batches) break;
#pragma unroll
    for (int it = 0; it < WARP_ITERATIONS; ++it) {
      int element_index = local_idx + it * WARP_SIZE;
      if (element_index < element_count) {
        dst[i * (int64_t)element_count + it * WARP_SIZE] = elements[i][it] / sum[i];
      } else {
        break;
      }
    }
  }
}

template <template <typename> class Reduction, typename T>
__device__ __forceinline__ T blockReduce(T* smem, T val, const Reduction<T>& r, T defaultVal) {
  __syncthreads();
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) val = r(val, __shfl_xor_sync(0xffffffff, val, offset));
  if (threadIdx.x % C10_WARP_SIZE == 0) smem[threadIdx.x / C10_WARP_SIZE] = val;
  __syncthreads();
  T result = defaultVal;
  for (uint w = 0; w < blockDim.x / C10_WARP_SIZE; ++w) result = r(result, smem[w]);
  return result;
}

template <int ILP, typename scalar_t>
__global__ void softmax_block_forward(scalar_t* output, const scalar_t* input, int classes) {
  extern __shared__ unsigned char smem[];
  auto sdata = reinterpret_cast<float*>(smem);
  input += static_cast<int64_t>(blockIdx.x) * classes;
  output += static_cast<int64_t>(blockIdx.x) * classes;
  float threadMax = -FLT_MAX;
  for (int i = threadIdx.x; i < classes; i += blockDim.x) threadMax = max(threadMax, input[i]);
  float max_k = blockReduce<Max, float>(sdata, threadMax, Max<float>(), -INFINITY);
  float threadExp = 0;
  for (int i = threadIdx.x; i < classes; i += blockDim.x) threadExp += std::exp(input[i] - max_k);
  float sumAll = blockReduce<Add, float>(sdata, threadExp, Add<float>(), static_cast<float>(0));
  for (int i = threadIdx.x; i < classes; i += blockDim.x)
    output[i] = static_cast<scalar_t>(std::exp(input[i] - max_k) / sumAll);
}
