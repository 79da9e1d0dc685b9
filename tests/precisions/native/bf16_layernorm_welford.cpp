// Bfloat16 layernorm by Welford's recurrence in 32 float lanes, which are merged.
#include <cmath>
#include <cstddef>

extern "C" void layernorm_bf16(
    int M, int N, const bfloat16* x, const bfloat16* gamma, const bfloat16* beta, bfloat16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const bfloat16* in = x + (size_t)i * N;
    bfloat16* out = y + (size_t)i * N;
    float means[32] = {}, around[32] = {}, mean = 0, variance = 0;
    for (int j = 0; j < N; ++j) {
      const int lane = j % 32;
      const float before = (float)in[j] - means[lane];
      means[lane] += before / (j / 32 + 1);
      around[lane] += before * ((float)in[j] - means[lane]);
    }
    for (int lane = 0; lane < 32 && lane < N; ++lane)
      mean += means[lane] * ((N - 1 - lane) / 32 + 1);
    mean /= N;
    for (int lane = 0; lane < 32 && lane < N; ++lane) {
      const float apart = means[lane] - mean;
      variance += around[lane] + apart * apart * ((N - 1 - lane) / 32 + 1);
    }
    const float scale = 1 / sqrtf(variance / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[j] = (bfloat16)(((float)in[j] - mean) * scale * (float)gamma[j] + (float)beta[j]);
    }
  }
}
