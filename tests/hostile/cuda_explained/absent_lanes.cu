/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [48]
args = ["N", "x", "y"]
---*/
// A block of 48 threads, and a mask of 32 lanes in its second warp.
extern "C" __global__ void rows(int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float parts[2];
  const float* in = x + (size_t)blockIdx.x * n;
  float top = -3.4e38f, sum = 0.0f;
  for (int i = 0; i < n; ++i) top = fmaxf(top, in[i]);
  for (int i = threadIdx.x; i < n; i += 48) sum += expf(in[i] - top);
  for (int o = 16; o; o >>= 1)
    sum += __shfl_xor_sync(0xffffffff, sum, o);  // named
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 48)
    y[(size_t)blockIdx.x * n + i] = expf(in[i] - top) / (parts[0] + parts[1]);
}
