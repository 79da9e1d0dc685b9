// Tf32x3 by three bfloat16 parts and six products.
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

static void split(float whole, float* parts) {
  parts[0] = round_to_even(whole, 7);
  const float rest = __builtin_isinf(whole) ? 0 : whole - parts[0];
  parts[1] = round_to_even(rest, 7);
  parts[2] = round_to_even(rest - parts[1], 7);
}

extern "C" void gemm_tf32x3(int M, int N, int K, const float* A, const float* B, float* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const float *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) {
        float a[3], b[3];
        split(row[k], a);
        split(column[(size_t)k * N], b);
        total += a[0] * b[2] + a[1] * b[1] + a[2] * b[0];
        total += a[0] * b[1] + a[1] * b[0];
        total += a[0] * b[0];
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
