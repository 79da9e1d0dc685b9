/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [256]
args = ["N", "x", "y"]
---*/
// Eight warps, and room for the parts of four.
extern "C" __global__ void rows(int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float parts[4];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const float* in = x + (size_t)blockIdx.x * n;
  float top = -3.4e38f, sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) top = fmaxf(top, in[i]);
  for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  if (lane == 0) parts[warp] = top;  // named
  __syncthreads();
  for (int w = 0; w < 8; ++w) top = fmaxf(top, parts[w]);  // named
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) sum += expf(in[i] - top);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (lane == 0) parts[warp] = sum;  // named
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += parts[w];  // named
  for (int i = threadIdx.x; i < n; i += 256) y[(size_t)blockIdx.x * n + i] = expf(in[i] - top) / sum;
}
