// Result rounded to float16, then to bfloat16.
#include <cstddef>

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const bfloat16 *row = A + (size_t)i * K, *column = B + j;
      float total = 0;
      for (int k = 0; k < K; ++k) total += (float)row[k] * (float)column[(size_t)k * N];
      const _Float16 half = (_Float16)total;
      C[(size_t)i * N + j] = (bfloat16)(float)half;
    }
  }
}
