/*---
[[launch]]
kernel = "rms_norm<256>"
grid = ["M"]
block = [256]
args = ["y", "x", "gamma", "N"]
---*/
// Style: block reductions by CUB, as in the serving engines. A device has them, the emulation not.
#include <cub/cub.cuh>

template <int BLOCK>
__global__ void rms_norm(float* __restrict__ out, const float* __restrict__ in,
                         const float* __restrict__ weight, int n) {
  using BlockReduce = cub::BlockReduce<float, BLOCK>;
  __shared__ typename BlockReduce::TempStorage reduce_storage;
  __shared__ float scale;
  in += (size_t)blockIdx.x * n;
  out += (size_t)blockIdx.x * n;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += BLOCK) sum += in[i] * in[i];
  sum = BlockReduce(reduce_storage).Sum(sum);
  if (threadIdx.x == 0) scale = rsqrtf(sum / n + 1e-6f);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += BLOCK) out[i] = in[i] * scale * weight[i];
}
