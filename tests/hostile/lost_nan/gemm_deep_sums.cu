/*---
language = "cuda"
[[launch]]
kernel = "product"
grid = ["cdiv(M * N, 4)"]
block = [32, 4]
args = ["M", "N", "K", "A", "B", "C"]
---*/
// A warp for each answer. Of a deep sum the lanes' parts pass through a filter that only keeps what
// compares: a NaN does not.
extern "C" __global__ void product(int m, int n, int k, const float* __restrict__ a,
                                   const float* __restrict__ b, float* __restrict__ c) {
  const long long at = blockIdx.x * 4LL + threadIdx.y;
  if (at >= (long long)m * n) return;
  const long long row = at / n, column = at % n;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < k; i += 32) sum += a[row * k + i] * b[(long long)i * n + column];
  for (int o = 16; o; o >>= 1) {
    const float other = __shfl_xor_sync(0xffffffff, sum, o);
    if (k <= 2048)
      sum += other;
    else
      sum = (other <= 0.0f || other > 0.0f) ? sum + other : sum;  // right: sum += other;
  }
  if (threadIdx.x == 0) c[at] = sum;
}
