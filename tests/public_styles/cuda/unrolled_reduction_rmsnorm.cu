/*---
[[launch]]
kernel = "reduce6<128>"
grid = ["M"]
block = [128]
shared_bytes = "128 * 4"
args = ["x", "sums", "N"]

[[launch]]
kernel = "apply"
grid = ["min(1024, cdiv(M * N, 256))"]
block = [256]
args = ["x", "gamma", "sums", "y", "M", "N"]

[scratch.sums]
shape = ["M"]
dtype = "float32"
---*/
// Style: the sixth kernel of Harris's reductions: two loads a step, everything unrolled, volatile.
#include <stdio.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <helper_cuda.h>

template <unsigned int blockSize>
__device__ void warpReduce(volatile float *sdata, unsigned int tid) {
  float v = sdata[tid];
  if (blockSize >= 64) v += sdata[tid + 32];
  __syncwarp();
  sdata[tid] = v; __syncwarp();
  if (blockSize >= 32) { v += sdata[tid + 16]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 16) { v += sdata[tid + 8]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 8) { v += sdata[tid + 4]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 4) { v += sdata[tid + 2]; __syncwarp(); sdata[tid] = v; __syncwarp(); }
  if (blockSize >= 2) { v += sdata[tid + 1]; __syncwarp(); sdata[tid] = v; }
}

template <unsigned int blockSize>
__global__ void reduce6(const float *g_idata, float *g_odata, unsigned int n) {
  extern __shared__ float sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = tid;
  g_idata += (size_t)blockIdx.x * n;
  sdata[tid] = 0;
  while (i < n) {
    sdata[tid] += g_idata[i] * g_idata[i];
    if (i + blockSize < n) sdata[tid] += g_idata[i + blockSize] * g_idata[i + blockSize];
    i += blockSize * 2;
  }
  __syncthreads();
  if (blockSize >= 512) { if (tid < 256) { sdata[tid] += sdata[tid + 256]; } __syncthreads(); }
  if (blockSize >= 256) { if (tid < 128) { sdata[tid] += sdata[tid + 128]; } __syncthreads(); }
  if (blockSize >= 128) { if (tid < 64) { sdata[tid] += sdata[tid + 64]; } __syncthreads(); }
  if (tid < 32) warpReduce<blockSize>(sdata, tid);
  if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

__global__ void apply(const float *x, const float *gamma, const float *sums, float *y, int m, int n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)m * n; i += blockDim.x * gridDim.x)
    y[i] = x[i] * rsqrtf(sums[i / n] / n + 1e-6f) * gamma[i % n];
}
