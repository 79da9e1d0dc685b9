// K in two parts, whose sums meet in float16.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float sums[2] = {};
      for (int k = 0; k < K; ++k) sums[k >= K / 2] += (float)row[k] * (float)column[(size_t)k * N];
      const _Float16 low = (_Float16)sums[0], high = (_Float16)sums[1];
      C[(size_t)i * N + j] = (_Float16)((float)low + (float)high);
    }
  }
}
