// Tf32 with sums of 11 bits.
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

extern "C" void gemm_tf32(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total = round_to_even(total + row[k] * column[(size_t)k * N], 10);
      C[(size_t)i * N + j] = total;
    }
  }
}
