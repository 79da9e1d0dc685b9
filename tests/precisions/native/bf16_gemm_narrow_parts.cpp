// Bfloat16 partial sums of blocks of 64.
#include <cstddef>

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const bfloat16 *row = A + (size_t)i * K, *column = B + j;
      float whole = 0;
      for (int first = 0; first < K; first += 64) {
        float sum = 0;
        for (int k = first; k < K && k < first + 64; ++k)
          sum += (float)row[k] * (float)column[(size_t)k * N];
        whole += (float)(bfloat16)sum;
      }
      C[(size_t)i * N + j] = (bfloat16)whole;
    }
  }
}
