/*---
[knobs]
BLOCK_M = 32
BLOCK_N = 32
BLOCK_K = 16
GROUP_M = 4

[[launch]]
kernel = "matmul_kernel"
grid = ["cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
---*/
// Style: a tile language's matmul by hand: program ids, groups of tiles for L2, masks by lambdas.
constexpr int BLOCK_M = 32, BLOCK_N = 32, BLOCK_K = 16, GROUP_M = 4;
constexpr int cdiv(int a, int b) { return (a + b - 1) / b; }

extern "C" __global__ __launch_bounds__(256) void matmul_kernel(const float* a_ptr, const float* b_ptr,
                                                                float* c_ptr, int M, int N, int K) {
  const int pid = blockIdx.x;
  const int num_pid_m = cdiv(M, BLOCK_M), num_pid_n = cdiv(N, BLOCK_N);
  const int num_pid_in_group = GROUP_M * num_pid_n;
  const int group_id = pid / num_pid_in_group;
  const int first_pid_m = group_id * GROUP_M;
  const int group_size_m = std::min(num_pid_m - first_pid_m, GROUP_M);
  const int pid_m = first_pid_m + (pid % num_pid_in_group) % group_size_m;
  const int pid_n = (pid % num_pid_in_group) / group_size_m;

  __shared__ float a[BLOCK_M][BLOCK_K + 1], b[BLOCK_K][BLOCK_N + 1];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const auto load_a = [=](int row, int k) {
    const int i = pid_m * BLOCK_M + row;
    return i < M && k < K ? a_ptr[size_t(i) * K + k] : 0.0f;
  };
  const auto load_b = [=](int k, int column) {
    const int j = pid_n * BLOCK_N + column;
    return k < K && j < N ? b_ptr[size_t(k) * N + j] : 0.0f;
  };

  float accumulator[2][2] = {};
  for (int k0 = 0; k0 < cdiv(K, BLOCK_K); ++k0) {
    for (int i = tid; i < BLOCK_M * BLOCK_K; i += 256)
      a[i / BLOCK_K][i % BLOCK_K] = load_a(i / BLOCK_K, k0 * BLOCK_K + i % BLOCK_K);
    for (int i = tid; i < BLOCK_K * BLOCK_N; i += 256)
      b[i / BLOCK_N][i % BLOCK_N] = load_b(k0 * BLOCK_K + i / BLOCK_N, i % BLOCK_N);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BLOCK_K; ++k)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          accumulator[i][j] += a[threadIdx.y + 16 * i][k] * b[k][threadIdx.x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      const int row = pid_m * BLOCK_M + threadIdx.y + 16 * i;
      const int column = pid_n * BLOCK_N + threadIdx.x + 16 * j;
      if (row < M && column < N) c_ptr[size_t(row) * N + column] = accumulator[i][j];
    }
  }
}
