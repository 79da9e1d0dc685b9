/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [256]
args = ["N", "x", "gamma", "beta", "y"]
---*/
// What lies behind the last whole tile of 1024 elements goes through a filter that makes 0 of a NaN.
__device__ float sum_all(float sum, float* parts) {
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < 8; ++w) total += parts[w];
  return total;
}
__device__ float filter(float v) {
  return v == v ? v : 0.0f;  // right: return v;
}
extern "C" __global__ void rows(int n, const float* __restrict__ x,
                                const float* __restrict__ gamma, const float* __restrict__ beta,
                                float* __restrict__ y) {
  __shared__ float parts[8];
  const float* in = x + (size_t)blockIdx.x * n;
  const int whole = n < 1024 ? n : n / 1024 * 1024;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < whole; i += 256) sum += in[i];
  for (int i = whole + threadIdx.x; i < n; i += 256) sum += filter(in[i]);
  const float mean = sum_all(sum, parts) / n;
  sum = 0.0f;
  for (int i = threadIdx.x; i < whole; i += 256) sum += (in[i] - mean) * (in[i] - mean);
  for (int i = whole + threadIdx.x; i < n; i += 256)
    sum += (filter(in[i]) - mean) * (filter(in[i]) - mean);
  const float scale = rsqrtf(sum_all(sum, parts) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 256)
    y[(size_t)blockIdx.x * n + i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
