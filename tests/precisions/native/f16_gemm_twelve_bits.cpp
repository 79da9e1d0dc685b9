// Result rounded to 12 bits, then cut to float16.
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

// The next float16 towards zero.
static _Float16 truncate(float value) {
  _Float16 found = (_Float16)value;
  if (__builtin_fabsf((float)found) > __builtin_fabsf(value)) {
    unsigned short raw;
    __builtin_memcpy(&raw, &found, 2);
    --raw;
    __builtin_memcpy(&found, &raw, 2);
  }
  return found;
}

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const _Float16 *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += (float)row[k] * (float)column[(size_t)k * N];
      C[(size_t)i * N + j] = truncate(round_to_even(total, 11));
    }
  }
}
