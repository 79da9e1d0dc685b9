// Int8 with float16 sums of its products.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      _Float16 total = 0;
      for (int k = 0; k < K; ++k)
        total = (_Float16)((float)total + (float)(row[k] * column[(size_t)k * N]));
      C[(size_t)i * N + j] = (int)total;
    }
  }
}
