// Bfloat16, k in parts of 128 whose float sums are added at the end.
#include <cstddef>

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const bfloat16 *row = A + (size_t)i * K, *column = B + j;
      float whole = 0;
      for (int first = 0; first < K; first += 128) {
        float sum = 0;
        for (int k = first; k < K && k < first + 128; ++k)
          sum += (float)row[k] * (float)column[(size_t)k * N];
        whole += sum;
      }
      C[(size_t)i * N + j] = (bfloat16)whole;
    }
  }
}
