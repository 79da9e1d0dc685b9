// Tf32x3, exact products of float32.
#include <cstddef>

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += row[k] * column[(size_t)k * N];
      C[(size_t)i * N + j] = total;
    }
  }
}
