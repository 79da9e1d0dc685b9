// Products rounded to float16 before the sum.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        const _Float16 product = (_Float16)((float)row[k] * (float)column[(size_t)k * N]);
        total += (float)product;
      }
      C[(size_t)i * N + j] = (_Float16)total;
    }
  }
}
