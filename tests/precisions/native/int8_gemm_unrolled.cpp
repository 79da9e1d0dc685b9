// Int8, four products at a time with what is left at the end.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int part[4] = {}, k = 0;
      for (; k + 4 <= K; k += 4) {
        for (int lane = 0; lane < 4; ++lane) {
          part[lane] += row[k + lane] * column[(size_t)(k + lane) * N];
        }
      }
      for (; k < K; ++k) part[0] += row[k] * column[(size_t)k * N];
      C[(size_t)i * N + j] = part[0] + part[1] + part[2] + part[3];
    }
  }
}
