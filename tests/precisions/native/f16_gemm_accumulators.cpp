// Float16, blocks of rows of B with four accumulators an element.
#include <cstddef>

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float part[4] = {};
      int k = 0;
      for (; k + 4 <= K; k += 4) {
        for (int lane = 0; lane < 4; ++lane) {
          part[lane] += (float)row[k + lane] * (float)column[(size_t)(k + lane) * N];
        }
      }
      for (; k < K; ++k) part[0] += (float)row[k] * (float)column[(size_t)k * N];
      C[(size_t)i * N + j] = (_Float16)((part[0] + part[2]) + (part[1] + part[3]));
    }
  }
}
