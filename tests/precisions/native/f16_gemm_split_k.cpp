// Float16, k in four parts whose float sums are added at the end.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float whole = 0;
      for (int part = 0; part < 4; ++part) {
        const int first = (int)((long)K * part / 4), last = (int)((long)K * (part + 1) / 4);
        float sum = 0;
        for (int k = first; k < last; ++k) sum += (float)row[k] * (float)column[(size_t)k * N];
        whole += sum;
      }
      C[(size_t)i * N + j] = (_Float16)whole;
    }
  }
}
