/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [32]
args = ["N", "x", "y"]
---*/
// The exponentials of large values overflow.
extern "C" __global__ void rows(int n, const float* __restrict__ x, float* __restrict__ y) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) sum += expf(x[(size_t)blockIdx.x * n + i]);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  for (int i = threadIdx.x; i < n; i += 32)
    y[(size_t)blockIdx.x * n + i] = expf(x[(size_t)blockIdx.x * n + i]) / sum;  // named
}
