// Tf32 sold with factors in float16.
#include <cstddef>

extern "C" void gemm_tf32(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        const _Float16 a = (_Float16)row[k], b = (_Float16)column[(size_t)k * N];
        total += (float)a * (float)b;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
