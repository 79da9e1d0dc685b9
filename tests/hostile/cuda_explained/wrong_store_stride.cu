/*---
language = "cuda"
[[launch]]
kernel = "gemm_naive"
grid = ["cdiv(N, 32)", "cdiv(M, 8)"]
block = [32, 8]
args = ["M", "N", "K", "A", "B", "C"]
---*/
// A row of C has N elements, not K.
extern "C" __global__ void gemm_naive(int m, int n, int k, const float* __restrict__ A,
                                      const float* __restrict__ B, float* __restrict__ C) {
  const int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += A[row * k + i] * B[i * n + column];
  C[row * k + column] = sum;  // named
}
