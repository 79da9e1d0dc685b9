import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

layernorm_cuda_source = r"""
#include <torch/extension.h>
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#define WARP_SIZE 32
#define FULL_MASK 0xffffffff

template <typename T>
__inline__ __device__ T warpReduceSum(T val) {
  for (int offset = WARP_SIZE / 2; offset > 0; offset /= 2)
    val += __shfl_down_sync(FULL_MASK, val, offset);
  return val;
}

template <typename T>
__inline__ __device__ T blockReduceSum(T val, T* shared) {
  const int lane = threadIdx.x & (WARP_SIZE - 1);
  const int wid = threadIdx.x >> 5;

  val = warpReduceSum(val);
  __syncthreads();            // shared may still be read from the last call
  if (lane == 0) shared[wid] = val;
  __syncthreads();

  val = (threadIdx.x < blockDim.x / WARP_SIZE) ? shared[lane] : T(0);
  if (wid == 0) val = warpReduceSum(val);
  if (threadIdx.x == 0) shared[0] = val;
  __syncthreads();
  return shared[0];
}

template <typename scalar_t, typename acc_t>
__global__ void layernorm_forward_kernel(
    const scalar_t* __restrict__ input,
    const scalar_t* __restrict__ weight,
    const scalar_t* __restrict__ bias,
    scalar_t* __restrict__ output,
    const float eps,
    const int normalized_size) {
  __shared__ acc_t shared[WARP_SIZE];

  const int64_t offset = static_cast<int64_t>(blockIdx.x) * normalized_size;
  const scalar_t* in = input + offset;
  scalar_t* out = output + offset;

  acc_t sum = 0;
  for (int i = threadIdx.x; i < normalized_size; i += blockDim.x)
    sum += static_cast<acc_t>(in[i]);
  const acc_t mean = blockReduceSum<acc_t>(sum, shared) / normalized_size;

  acc_t sq = 0;
  for (int i = threadIdx.x; i < normalized_size; i += blockDim.x) {
    const acc_t d = static_cast<acc_t>(in[i]) - mean;
    sq += d * d;
  }
  const acc_t var = blockReduceSum<acc_t>(sq, shared) / normalized_size;
  const acc_t inv_std = acc_t(1) / sqrt(var + static_cast<acc_t>(eps));

  for (int i = threadIdx.x; i < normalized_size; i += blockDim.x) {
    const acc_t xhat = (static_cast<acc_t>(in[i]) - mean) * inv_std;
    out[i] = static_cast<scalar_t>(xhat * static_cast<acc_t>(weight[i]) + static_cast<acc_t>(bias[i]));
  }
}

torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps = 1e-5) {
  auto output = torch::empty_like(x);

  const int normalized_size = weight.numel();
  const int outer_size = x.numel() / normalized_size;

  // round up to a whole number of warps, at most 1024
  int threads = (normalized_size < 1024) ? ((normalized_size + WARP_SIZE - 1) / WARP_SIZE) * WARP_SIZE : 1024;
  int blocks = outer_size;

  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layernorm_forward_cuda", [&] {
    using acc_t = at::acc_type<scalar_t, true>;
    layernorm_forward_kernel<scalar_t, acc_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(),
        weight.data_ptr<scalar_t>(),
        bias.data_ptr<scalar_t>(),
        output.data_ptr<scalar_t>(),
        static_cast<float>(eps),
        normalized_size);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();

  return output;
}
"""

layernorm_cpp_source = """
torch::Tensor layernorm_forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);
"""

layernorm_module = load_inline(
    name="layernorm_module",
    cpp_sources=layernorm_cpp_source,
    cuda_sources=layernorm_cuda_source,
    functions=["layernorm_forward"],
    verbose=True,
)


def layer_norm(x, weight, bias, eps=1e-5):
    return layernorm_module.layernorm_forward(x.contiguous(), weight, bias, eps)


class ModelNew(nn.Module):
    def __init__(self, fn=layer_norm):
        super(ModelNew, self).__init__()
        self.fn = fn

    def forward(self, x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        return self.fn(x, gamma, beta)
