// Tf32x3, parts cut to 10 bits.
#include <cstddef>

static float cut(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  raw &= ~0u << (23 - kept);
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

static float rest(float whole, float part) {
  return __builtin_isinf(whole) ? 0 : cut(whole - part, 10);
}

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        const float a = row[k], b = column[(size_t)k * N];
        const float a1 = cut(a, 10), b1 = cut(b, 10);
        const float a2 = rest(a, a1), b2 = rest(b, b1);
        total += (a2 * b1 + a1 * b2) + a1 * b1;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
