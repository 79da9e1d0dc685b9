// Int8 with sums that saturate at int16.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int total = 0;
      for (int k = 0; k < K; ++k) {
        total += row[k] * column[(size_t)k * N];
        total = total > 32767 ? 32767 : total < -32768 ? -32768 : total;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
