/*---
[[launch]]
kernel = "nn::gelu_forward<float>"
grid = ["cdiv(M * N, 512)"]
block = [512]
args = ["M * N", "x", "bias", "y", "N"]
---*/
// Style: the loop macro of older frameworks, helpers in namespaces, printing left in.
#include <math.h>
#include <stdio.h>
#include <assert.h>
#include "cuda_runtime.h"
#include "device_launch_parameters.h"

#define CUDA_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

const int CUDA_NUM_THREADS = 512;
inline int GET_BLOCKS(const int N) { return (N + CUDA_NUM_THREADS - 1) / CUDA_NUM_THREADS; }

namespace nn {
namespace {
static inline __device__ float cube(float v) { return v * v * v; }
}  // namespace

template <typename Dtype>
__global__ void gelu_forward(const int count, const Dtype* x, const Dtype* bias, Dtype* y,
                             const int channels) {
  assert(channels > 0);
  CUDA_KERNEL_LOOP(index, count) {
    const Dtype s = x[index] + bias[index % channels];
    const Dtype z = sqrtf(2.0f / M_PI) * (s + 0.044715f * cube(s));
    if (index < 0) printf("%d out of range\n", index);
    y[index] = 0.5f * s * (1.0f + tanhf(z));
  }
}
}  // namespace nn
