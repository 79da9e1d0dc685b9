/*---
language = "cuda"
[[launch]]
kernel = "flat"
grid = ["cdiv(M * N, 128)"]
block = [128]
args = ["M", "N", "x", "bias", "y"]
---*/
// The element behind the last one is written where the grid reaches it.
extern "C" __global__ void flat(int m, int n, const float* __restrict__ x,
                                const float* __restrict__ bias, float* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > m * n) return;
  const float s = x[i] + bias[i % n];  // named
  y[i] = 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));  // named
}
