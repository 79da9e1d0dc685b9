// Tf32x3, parts rounded to 10 bits, small products in a sum of their own.
#include <cstddef>

static float shorten(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  const unsigned step = 1u << (23 - kept);
  if ((raw & 0x7f800000u) != 0x7f800000u) raw = (raw + step / 2) & ~(step - 1);
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

static float rest(float whole, float part) {
  return __builtin_isinf(whole) ? 0 : shorten(whole - part, 10);
}

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0, small = 0;
      for (int k = 0; k < K; ++k) {
        const float a = row[k], b = column[(size_t)k * N];
        const float a1 = shorten(a, 10), b1 = shorten(b, 10);
        const float a2 = rest(a, a1), b2 = rest(b, b1);
        small += a2 * b1 + a1 * b2;
        total += a1 * b1;
      }
      C[(size_t)i * N + j] = total + small;
    }
  }
}
