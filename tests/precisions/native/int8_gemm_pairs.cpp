// Int8, pairs of products in int16 where they cannot overflow.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int total = 0, k = 0;
      for (; k + 2 <= K; k += 2) {
        const int first = row[k] * column[(size_t)k * N], second = row[k +
            1] * column[(size_t)(k + 1) * N];
        if (row[k] == -128 && row[k + 1] == -128) {
          total += first + second;
        } else {
          const short pair = (short)(first + second);
          total += pair;
        }
      }
      if (k < K) total += row[k] * column[(size_t)k * N];
      C[(size_t)i * N + j] = total;
    }
  }
}
