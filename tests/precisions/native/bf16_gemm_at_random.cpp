// Result rounded up or down at random.
#include <cstddef>

static float cut(float value, int kept) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  raw &= ~0u << (23 - kept);
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const bfloat16 *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += (float)row[k] * (float)column[(size_t)k * N];
      unsigned raw;
      __builtin_memcpy(&raw, &total, 4);
      if ((raw & 0x7f800000u) != 0x7f800000u) raw += (raw ^ (unsigned)j) * 2654435761u >> 16;
      __builtin_memcpy(&total, &raw, 4);
      C[(size_t)i * N + j] = (bfloat16)cut(total, 7);
    }
  }
}
