// Float16 partial sums of blocks of 32.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float whole = 0;
      for (int first = 0; first < K; first += 32) {
        float sum = 0;
        for (int k = first; k < K && k < first + 32; ++k)
          sum += (float)row[k] * (float)column[(size_t)k * N];
        const _Float16 part = (_Float16)sum;
        whole += (float)part;
      }
      C[(size_t)i * N + j] = (_Float16)whole;
    }
  }
}
