// Sums that become infinite at 65504 on the way.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        total += (float)row[k] * (float)column[(size_t)k * N];
        if (__builtin_fabsf(total) > 65504) total = total >
            0 ? __builtin_inff() : -__builtin_inff();
      }
      C[(size_t)i * N + j] = (_Float16)total;
    }
  }
}
