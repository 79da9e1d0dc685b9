/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
args = ["N", "x", "bias", "y"]
---*/
// A stride in bytes of another tensor, taken for one in elements: the row lies far outside of x.
extern "C" __global__ void rows(int n, const float* __restrict__ x, const float* __restrict__ bias,
                                float* __restrict__ y) {
  const int first = blockIdx.x * 700000000u;
  for (int i = threadIdx.x; i < n; i += 64) {
    const float s = x[first + i] + bias[i];  // named
    y[first + i] = 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));  // named
  }
}
