import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Row-wise softmax: one block per row, shared-memory tree reduction.
cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math.h>
#include <float.h>

__global__ void softmax_kernel(const float* __restrict__ input, float* __restrict__ output, int batch_size, int dim) {
    extern __shared__ float sdata[];

    int row = blockIdx.x;
    int tid = threadIdx.x;
    if (row >= batch_size) return;

    const float* in_row = input + row * dim;
    float* out_row = output + row * dim;

    // 1. max
    float local_max = -FLT_MAX;
    for (int i = tid; i < dim; i += blockDim.x) {
        local_max = fmaxf(local_max, in_row[i]);
    }
    sdata[tid] = local_max;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] = fmaxf(sdata[tid], sdata[tid + s]);
        }
        __syncthreads();
    }
    float row_max = sdata[0];
    __syncthreads();

    // 2. sum of exponentials
    float local_sum = 0.0f;
    for (int i = tid; i < dim; i += blockDim.x) {
        float e = expf(in_row[i] - row_max);
        out_row[i] = e;
        local_sum += e;
    }
    sdata[tid] = local_sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] += sdata[tid + s];
        }
        __syncthreads();
    }
    float inv_sum = 1.0f / sdata[0];

    // 3. normalize
    for (int i = tid; i < dim; i += blockDim.x) {
        out_row[i] *= inv_sum;
    }
}

torch::Tensor softmax_cuda(torch::Tensor input) {
    auto batch_size = input.size(0);
    auto dim = input.size(1);
    auto output = torch::empty_like(input);

    const int threads = 256;
    const int blocks = batch_size;
    size_t shared_mem = threads * sizeof(float);

    softmax_kernel<<<blocks, threads, shared_mem>>>(
        input.data_ptr<float>(), output.data_ptr<float>(), batch_size, dim);

    return output;
}
"""

cpp_source = "torch::Tensor softmax_cuda(torch::Tensor input);"

softmax_ext = load_inline(
    name="softmax_ext",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["softmax_cuda"],
    verbose=True,
    extra_cflags=["-O3"],
    extra_ldflags=[""],
)


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.softmax = softmax_ext

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.softmax.softmax_cuda(x)


batch_size = 4096
dim = 1024


def get_inputs():
    return [torch.randn(batch_size, dim).cuda()]


def get_init_inputs():
    return []
