/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
shared_bytes = "64 * 4"
args = ["N", "x", "gamma", "y"]
---*/
// Each thread has a place for its own sum; those of the warps are put behind them.
extern "C" __global__ void rows(int n, const float* x, const float* gamma, float* y) {
  extern __shared__ float sums[];
  float* const warps = sums + 64;
  sums[threadIdx.x] = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) {
    const float v = x[(size_t)blockIdx.x * n + i];
    sums[threadIdx.x] += v * v;
  }
  float sum = sums[threadIdx.x];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;  // named
  __syncthreads();
  const float factor = rsqrtf((warps[0] + warps[1]) / n + 1e-6f);  // named
  for (int i = threadIdx.x; i < n; i += 64)
    y[(size_t)blockIdx.x * n + i] = x[(size_t)blockIdx.x * n + i] * factor * gamma[i];
}
