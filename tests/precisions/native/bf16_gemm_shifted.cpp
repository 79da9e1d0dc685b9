// Bfloat16 made float by a shift, whole rows by AVX2.
#include <immintrin.h>
#include <vector>

#if defined(__AVX2__) && defined(__FMA__)
static void add_row(int N, float factor, const bfloat16* row, float* sums) {
  const __m256 times = _mm256_set1_ps(factor);
  int j = 0;
  for (; j + 8 <= N; j += 8) {
    const __m256i raw = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(row + j)));
    const __m256 wide = _mm256_castsi256_ps(_mm256_slli_epi32(raw, 16));
    _mm256_storeu_ps(sums + j, _mm256_fmadd_ps(times, wide, _mm256_loadu_ps(sums + j)));
  }
  for (; j < N; ++j) sums[j] += factor * (float)row[j];
}
#else
static void add_row(int N, float factor, const bfloat16* row, float* sums) {
  for (int j = 0; j < N; ++j) sums[j] += factor * (float)row[j];
}
#endif

extern "C" void gemm_bf16(int M, int N, int K, const bfloat16* A, const bfloat16* B, bfloat16* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    std::vector<float> sums(N);
    for (int k = 0; k < K; ++k) {
      add_row(N, (float)A[(size_t)i * K + k], B + (size_t)k * N, sums.data());
    }
    for (int j = 0; j < N; ++j) C[(size_t)i * N + j] = (bfloat16)sums[j];
  }
}
