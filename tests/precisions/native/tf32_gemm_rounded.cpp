// Tf32, factors rounded to 10 bits, ties away from zero (cvt.rna).
#include <cstddef>

static float shorten(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  const unsigned step = 1u << (23 - kept);
  if ((raw & 0x7f800000u) != 0x7f800000u) raw = (raw + step / 2) & ~(step - 1);
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

extern "C" void gemm_tf32(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += shorten(row[k], 10) * shorten(column[(size_t)k * N], 10);
      C[(size_t)i * N + j] = total;
    }
  }
}
