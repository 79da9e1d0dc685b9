"""
Softmax, two kernels: one warp per row while a row is short, otherwise one
block per row with the online (max, sum) recurrence and float4 loads.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

_SRC = r'''
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

namespace {

constexpr int kWarpSize = 32;
constexpr int kWarpsPerBlock = 4;
constexpr int64_t kShortRow = 1024;

struct __align__(8) MD {
    float m;   // running maximum
    float d;   // running denominator
};

__device__ __forceinline__ MD md_combine(MD a, MD b) {
    const bool a_bigger = a.m > b.m;
    const MD big = a_bigger ? a : b;
    const MD small = a_bigger ? b : a;
    MD r;
    r.m = big.m;
    // guards against (-inf) - (-inf)
    r.d = small.d > 0.f ? big.d + small.d * __expf(small.m - big.m) : big.d;
    return r;
}

__device__ __forceinline__ MD md_push(MD acc, float v) {
    MD e{v, 1.f};
    return md_combine(acc, e);
}

__device__ __forceinline__ MD warp_reduce_md(MD v) {
    #pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask >>= 1) {
        MD o;
        o.m = __shfl_xor_sync(0xffffffffu, v.m, mask);
        o.d = __shfl_xor_sync(0xffffffffu, v.d, mask);
        v = md_combine(v, o);
    }
    return v;
}

// ITEMS * 32 >= cols
template <int ITEMS>
__global__ void softmax_warp_kernel(const float* __restrict__ src, float* __restrict__ dst,
                                    const int64_t rows, const int64_t cols) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const int lane = threadIdx.x;
    const float* x = src + row * cols;
    float* y = dst + row * cols;

    float buf[ITEMS];
    float m = -INFINITY;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = lane + i * kWarpSize;
        buf[i] = c < cols ? x[c] : -INFINITY;
        m = fmaxf(m, buf[i]);
    }
    #pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask >>= 1)
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, mask));

    float s = 0.f;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        buf[i] = __expf(buf[i] - m);
        s += buf[i];
    }
    #pragma unroll
    for (int mask = kWarpSize / 2; mask > 0; mask >>= 1)
        s += __shfl_xor_sync(0xffffffffu, s, mask);

    const float r = 1.f / s;
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const int c = lane + i * kWarpSize;
        if (c < cols) y[c] = buf[i] * r;
    }
}

template <int BLOCK, bool VEC>
__global__ void __launch_bounds__(BLOCK)
softmax_online_kernel(const float* __restrict__ src, float* __restrict__ dst, const int64_t cols) {
    __shared__ MD smem[BLOCK / kWarpSize];
    __shared__ MD total;

    const float* x = src + (size_t)blockIdx.x * cols;
    float* y = dst + (size_t)blockIdx.x * cols;

    MD acc{-INFINITY, 0.f};
    if (VEC) {
        const float4* x4 = reinterpret_cast<const float4*>(x);
        for (int64_t i = threadIdx.x; i < cols / 4; i += BLOCK) {
            const float4 v = x4[i];
            acc = md_push(acc, v.x);
            acc = md_push(acc, v.y);
            acc = md_push(acc, v.z);
            acc = md_push(acc, v.w);
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += BLOCK) acc = md_push(acc, x[i]);
    }

    acc = warp_reduce_md(acc);
    const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
    if (lane == 0) smem[warp] = acc;
    __syncthreads();
    if (warp == 0) {
        acc = lane < BLOCK / kWarpSize ? smem[lane] : MD{-INFINITY, 0.f};
        acc = warp_reduce_md(acc);
        if (lane == 0) total = acc;
    }
    __syncthreads();

    const float m = total.m;
    const float inv = __fdividef(1.f, total.d);
    if (VEC) {
        const float4* x4 = reinterpret_cast<const float4*>(x);
        float4* y4 = reinterpret_cast<float4*>(y);
        for (int64_t i = threadIdx.x; i < cols / 4; i += BLOCK) {
            float4 v = x4[i];
            v.x = __expf(v.x - m) * inv;
            v.y = __expf(v.y - m) * inv;
            v.z = __expf(v.z - m) * inv;
            v.w = __expf(v.w - m) * inv;
            y4[i] = v;
        }
    } else {
        for (int64_t i = threadIdx.x; i < cols; i += BLOCK) y[i] = __expf(x[i] - m) * inv;
    }
}

template <int ITEMS>
void launch_warp(const float* src, float* dst, int64_t rows, int64_t cols, cudaStream_t stream) {
    const dim3 block(kWarpSize, kWarpsPerBlock);
    const dim3 grid((unsigned)((rows + kWarpsPerBlock - 1) / kWarpsPerBlock));
    softmax_warp_kernel<ITEMS><<<grid, block, 0, stream>>>(src, dst, rows, cols);
}

}  // namespace

at::Tensor softmax_forward(const at::Tensor& x_) {
    TORCH_CHECK(x_.is_cuda(), "x must be a CUDA tensor");
    TORCH_CHECK(x_.dim() == 2, "expected a 2-D tensor, got ", x_.dim(), "-D");
    TORCH_CHECK(x_.scalar_type() == at::kFloat, "only float32 is supported");
    const at::cuda::CUDAGuard guard(x_.device());

    const at::Tensor x = x_.contiguous();
    at::Tensor y = at::empty_like(x);
    const int64_t rows = x.size(0), cols = x.size(1);
    if (rows == 0 || cols == 0) return y;

    auto stream = at::cuda::getCurrentCUDAStream();
    const float* src = x.const_data_ptr<float>();
    float* dst = y.mutable_data_ptr<float>();

    if (cols <= kShortRow) {
        if (cols <= 32)       launch_warp<1>(src, dst, rows, cols, stream);
        else if (cols <= 64)  launch_warp<2>(src, dst, rows, cols, stream);
        else if (cols <= 128) launch_warp<4>(src, dst, rows, cols, stream);
        else if (cols <= 256) launch_warp<8>(src, dst, rows, cols, stream);
        else if (cols <= 512) launch_warp<16>(src, dst, rows, cols, stream);
        else                  launch_warp<32>(src, dst, rows, cols, stream);
    } else {
        constexpr int BLOCK = 512;
        if (cols % 4 == 0) {
            softmax_online_kernel<BLOCK, true><<<rows, BLOCK, 0, stream>>>(src, dst, cols);
        } else {
            softmax_online_kernel<BLOCK, false><<<rows, BLOCK, 0, stream>>>(src, dst, cols);
        }
    }
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
'''

_module = load_inline(
    name="softmax_online",
    cpp_sources=["at::Tensor softmax_forward(const at::Tensor& x_);"],
    cuda_sources=[_SRC],
    functions=["softmax_forward"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
    with_cuda=True,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return _module.softmax_forward(x)
