// Tf32x3 by two bfloat16 parts and three products.
#include <cstddef>

static float round_to_even(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  const int lost = 23 - kept;
  if ((raw & 0x7f800000u) != 0x7f800000u) {
    raw = (raw + (1u << (lost - 1)) - 1 + (raw >> lost & 1u)) & ~0u << lost;
  }
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

static float rest(float whole, float part) {
  return __builtin_isinf(whole) ? 0 : round_to_even(whole - part, 7);
}

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        const float a = row[k], b = column[(size_t)k * N], a1 = round_to_even(a, 7),
            b1 = round_to_even(b, 7);
        total += rest(a, a1) * b1 + a1 * rest(b, b1);
        total += a1 * b1;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
