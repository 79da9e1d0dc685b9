/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
shared_bytes = "N * 4"
args = ["N", "x", "gamma", "y"]
---*/
// The row fills the dynamic shared memory; the sums are put behind it.
extern "C" __global__ void rows(int n, const float* x, const float* gamma, float* y) {
  extern __shared__ float row[];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) {
    row[i] = x[(size_t)blockIdx.x * n + i];
    sum += row[i] * row[i];
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) row[n + threadIdx.x / 32] = sum;  // named
  __syncthreads();
  const float factor = rsqrtf((row[n] + row[n + 1]) / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += 64)
    y[(size_t)blockIdx.x * n + i] = row[i] * factor * gamma[i];
}
