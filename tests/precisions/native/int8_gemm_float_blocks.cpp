// Int8, float sums of 512 products, which are exact, added in int32.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int whole = 0;
      for (int first = 0; first < K; first += 512) {
        float sum = 0;  // below 2^24: 512 * 128 * 128 is 2^23
        for (int k = first; k < K && k < first + 512; ++k)
          sum += (float)row[k] * (float)column[(size_t)k * N];
        whole += (int)sum;
      }
      C[(size_t)i * N + j] = whole;
    }
  }
}
