/*---
language = "cuda"
[[launch]]
kernel = "bias_gelu_chunks"
grid = [1024]
block = [256]
args = ["M", "N", "x", "bias", "y"]
---*/
// Each thread has a share of the elements; thread number times elements is beyond 32 bits.
extern "C" __global__ void bias_gelu_chunks(int m, int n, const float* __restrict__ x,
                                            const float* __restrict__ bias,
                                            float* __restrict__ y) {
  const int t = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256, elements = m * n;
  const int first = t * elements / threads;  // right: const int first = (long long)t * elements / threads;
  const int last = (t + 1) * elements / threads;  // right: const int last = (t + 1LL) * elements / threads;
  for (int i = first; i < last; ++i) {
    const float s = x[i] + bias[i % n];
    y[i] = 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));
  }
}
