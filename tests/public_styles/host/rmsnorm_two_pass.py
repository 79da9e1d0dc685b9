import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Two launches: (1) inverse RMS of every row, (2) elementwise scaling.
rmsnorm_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define BLOCK_SIZE 256
#define EPSILON 1e-6f

__global__ void compute_inv_rms_kernel(const float* __restrict__ x, float* __restrict__ inv_rms, int rows, int cols)
{
    __shared__ float partial[BLOCK_SIZE];
    int row = blockIdx.x;
    int tid = threadIdx.x;

    float acc = 0.0f;
    for (int j = tid; j < cols; j += BLOCK_SIZE) {
        float v = x[(long long)row * cols + j];
        acc += v * v;
    }
    partial[tid] = acc;
    __syncthreads();

    #pragma unroll
    for (int stride = BLOCK_SIZE / 2; stride >= 1; stride /= 2) {
        if (tid < stride) partial[tid] += partial[tid + stride];
        __syncthreads();
    }

    if (tid == 0) {
        inv_rms[row] = rsqrtf(partial[0] / (float)cols + EPSILON);
    }
}

__global__ void apply_scale_kernel(const float* __restrict__ x, const float* __restrict__ inv_rms,
                                   const float* __restrict__ weight, float* __restrict__ y,
                                   long long total, int cols)
{
    long long idx = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < total) {
        int row = idx / cols;
        int col = idx - (long long)row * cols;
        y[idx] = x[idx] * inv_rms[row] * weight[col];
    }
}

torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight) {
    x = x.contiguous();
    weight = weight.contiguous();
    int rows = x.size(0);
    int cols = x.size(1);

    auto inv_rms = torch::empty({rows}, x.options());
    auto y = torch::empty_like(x);

    compute_inv_rms_kernel<<<rows, BLOCK_SIZE>>>(x.data_ptr<float>(), inv_rms.data_ptr<float>(), rows, cols);

    long long total = x.numel();
    int num_blocks = (int)std::ceil((double)total / BLOCK_SIZE);
    apply_scale_kernel<<<num_blocks, BLOCK_SIZE>>>(
        x.data_ptr<float>(),
        inv_rms.data_ptr<float>(),
        weight.data_ptr<float>(),
        y.data_ptr<float>(),
        total,
        cols);

    return y;
}
"""

rmsnorm_cpp = "torch::Tensor rmsnorm_cuda(torch::Tensor x, torch::Tensor weight);"

rmsnorm = load_inline(
    name="rmsnorm",
    cpp_sources=rmsnorm_cpp,
    cuda_sources=rmsnorm_source,
    functions=["rmsnorm_cuda"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super(ModelNew, self).__init__()
        self.rmsnorm = rmsnorm

    def forward(self, x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        return self.rmsnorm.rmsnorm_cuda(x, gamma)
