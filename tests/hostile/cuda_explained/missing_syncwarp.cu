/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["cdiv(M, 4)"]
block = [32, 4]
args = ["M", "N", "x", "gamma", "y"]
---*/
// Lanes of a warp exchange values by shared memory, and do not wait for each other.
extern "C" __global__ void rows(int m, int n, const float* __restrict__ x,
                                const float* __restrict__ gamma, float* __restrict__ y) {
  __shared__ float parts[4][32];
  const int lane = threadIdx.x, row = blockIdx.x * 4 + threadIdx.y;
  if (row >= m) return;
  float sum = 0.0f;
  for (int i = lane; i < n; i += 32) sum += x[(size_t)row * n + i] * x[(size_t)row * n + i];
  parts[threadIdx.y][lane] = sum;  // named
  for (int o = 16; o; o >>= 1) {
    if (lane < o) parts[threadIdx.y][lane] += parts[threadIdx.y][lane + o];  // named
    __syncwarp();
  }
  const float factor = rsqrtf(parts[threadIdx.y][0] / n + 1e-6f);
  for (int i = lane; i < n; i += 32)
    y[(size_t)row * n + i] = x[(size_t)row * n + i] * factor * gamma[i];
}
