/*---
language = "cuda"
[[launch]]
kernel = "layernorm_rows"
grid = ["M"]
block = [32]
args = ["N", "x", "gamma", "beta", "y"]
---*/
// Four elements at a time, and none of what is left where N is no multiple of four.
extern "C" __global__ void layernorm_rows(int n, const float* __restrict__ x,
                                          const float* __restrict__ gamma,
                                          const float* __restrict__ beta, float* __restrict__ y) {
  const float* in = x + (long long)blockIdx.x * n;
  float* out = y + (long long)blockIdx.x * n;
  float mean = 0.0f, variance = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) mean += in[i];
  for (int o = 16; o; o >>= 1) mean += __shfl_xor_sync(0xffffffff, mean, o);
  mean /= n;
  for (int i = threadIdx.x; i < n; i += 32) variance += (in[i] - mean) * (in[i] - mean);
  for (int o = 16; o; o >>= 1) variance += __shfl_xor_sync(0xffffffff, variance, o);
  const float factor = 1.0f / sqrtf(variance / n + 1e-5f);
  for (int start = threadIdx.x * 4; start + 3 < n; start += 128)
#pragma unroll
    for (int i = start; i < start + 4; ++i) out[i] = (in[i] - mean) * factor * gamma[i] + beta[i];
  const int i = n / 4 * 4 + threadIdx.x;
  ;  // right: if (i < n) out[i] = (in[i] - mean) * factor * gamma[i] + beta[i];
}
