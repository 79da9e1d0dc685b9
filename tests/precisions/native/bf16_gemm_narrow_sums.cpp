// Sums in bfloat16.
#include <cstddef>

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const bfloat16 *row = A + (size_t)i * K, *column = B + j;
      bfloat16 total = 0.0f;
      for (int k = 0; k < K; ++k)
        total = (bfloat16)((float)total + (float)row[k] * (float)column[(size_t)k * N]);
      C[(size_t)i * N + j] = total;
    }
  }
}
