/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
args = ["N", "x", "bias", "y"]
---*/
// A 16-bit offset of the row.
extern "C" __global__ void rows(int n, const float* __restrict__ x, const float* __restrict__ bias,
                                float* __restrict__ y) {
  const short first = blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += 64) {
    const float s = x[first + i] + bias[i];  // named
    y[first + i] = 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));  // named
  }
}
