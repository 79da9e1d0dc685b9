// Tf32x3 by two float16 parts.
#include <cstddef>

static float half(float value) { return (float)(_Float16)value; }

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        const float a = row[k], b = column[(size_t)k * N], a1 = half(a), b1 = half(b);
        total += half(a - a1) * b1 + a1 * half(b - b1);
        total += a1 * b1;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
