/*---
language = "cuda"
[[launch]]
kernel = "rmsnorm_rows"
grid = ["cdiv(M, 4)"]
block = [32, 4]
args = ["M", "N", "x", "gamma", "y"]
---*/
// The last loop runs one element too far: into the next row, and past the end of the last one.
extern "C" __global__ void rmsnorm_rows(int m, int n, const float* __restrict__ x,
                                        const float* __restrict__ gamma, float* __restrict__ y) {
  const int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= m) return;
  const float* in = x + (long long)row * n;
  float* out = y + (long long)row * n;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) sum += in[i] * in[i];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  const float factor = 1.0f / sqrtf(sum / n + 1e-6f);
  for (int i = threadIdx.x; i <= n; i += 32)  // right: for (int i = threadIdx.x; i < n; i += 32)
    out[i] = in[i] * factor * gamma[i];
}
