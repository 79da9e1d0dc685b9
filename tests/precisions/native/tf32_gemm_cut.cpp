// Tf32, factors cut to 10 bits.
#include <cstddef>

static float cut(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  raw &= ~0u << (23 - kept);
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

extern "C" void gemm_tf32(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += cut(row[k], 10) * cut(column[(size_t)k * N], 10);
      C[(size_t)i * N + j] = total;
    }
  }
}
