/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
args = ["N", "x", "gamma", "y"]
---*/
// Threads without an element leave the others at the barrier of another line.
extern "C" __global__ void rows(int n, const float* x, const float* gamma, float* y) {
  __shared__ float parts[64];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) sum += x[(size_t)blockIdx.x * n + i] * x[(size_t)blockIdx.x * n + i];
  parts[threadIdx.x] = sum;
  if (threadIdx.x < 32)
    __syncthreads();  // named
  else
    __syncthreads();  // named
  float total = 0.0f;
  for (int i = 0; i < 64; ++i) total += parts[i];
  const float factor = rsqrtf(total / n + 1e-6f);
  for (int i = threadIdx.x; i < n; i += 64)
    y[(size_t)blockIdx.x * n + i] = x[(size_t)blockIdx.x * n + i] * factor * gamma[i];
}
