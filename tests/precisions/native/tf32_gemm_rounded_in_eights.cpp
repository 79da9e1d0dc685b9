// Tf32, rounded factors in groups of eight, as a matrix unit adds them.
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
      for (int first = 0; first < K; first += 8) {
        float group = 0;
        for (int k = first; k < K && k < first + 8; ++k) {
          group += shorten(row[k], 10) * shorten(column[(size_t)k * N], 10);
        }
        total += group;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
