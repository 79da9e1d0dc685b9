// Float16, whole rows by F16C and fused multiply-add.
#include <immintrin.h>
#include <vector>

#if defined(__F16C__) && defined(__FMA__)
static void add_row(int N, float factor, const _Float16* row, float* sums) {
  const __m256 times = _mm256_set1_ps(factor);
  int j = 0;
  for (; j + 8 <= N; j += 8) {
    const __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(row + j)));
    _mm256_storeu_ps(sums + j, _mm256_fmadd_ps(times, wide, _mm256_loadu_ps(sums + j)));
  }
  for (; j < N; ++j) sums[j] += factor * (float)row[j];
}
#else
static void add_row(int N, float factor, const _Float16* row, float* sums) {
  for (int j = 0; j < N; ++j) sums[j] += factor * (float)row[j];
}
#endif

extern "C" void gemm_f16(int M, int N, int K, const _Float16* A, const _Float16* B, _Float16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    std::vector<float> sums(N);
    for (int k = 0; k < K; ++k) {
      add_row(N, (float)A[(size_t)i * K + k], B + (size_t)k * N, sums.data());
    }
    for (int j = 0; j < N; ++j) C[(size_t)i * N + j] = (_Float16)sums[j];
  }
}
