/*---
language = "cuda"
[[launch]]
kernel = "gemm_tiled"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["M", "N", "K", "A", "B", "C"]
---*/
// Tiles are read while other threads still fill them.
extern "C" __global__ void gemm_tiled(int m, int n, int k, const float* __restrict__ A,
                                      const float* __restrict__ B, float* __restrict__ C) {
  __shared__ float As[16][16], Bs[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0.0f;
  for (int start = 0; start < k; start += 16) {
    As[y][x] = row < m && start + x < k ? A[row * k + start + x] : 0.0f;  // named
    Bs[y][x] = start + y < k && column < n ? B[(start + y) * n + column] : 0.0f;  // named
    for (int i = 0; i < 16; ++i) sum += As[y][i] * Bs[i][x];  // named
    __syncthreads();
  }
  if (row < m && column < n) C[row * n + column] = sum;
}
