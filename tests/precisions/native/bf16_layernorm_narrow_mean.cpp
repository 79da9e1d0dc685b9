// Layernorm whose mean is rounded to bfloat16.
#include <cmath>
#include <cstddef>

extern "C" void layernorm_bf16(
    int M, int N, const bfloat16* x, const bfloat16* gamma, const bfloat16* beta, bfloat16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const bfloat16* in = x + (size_t)i * N;
    bfloat16* out = y + (size_t)i * N;
    float sum = 0, variance = 0;
    for (int j = 0; j < N; ++j) sum += (float)in[j];
    const bfloat16 rounded = (bfloat16)(sum / N);
    const float mean = (float)rounded;
    for (int j = 0; j < N; ++j) variance += ((float)in[j] - mean) * ((float)in[j] - mean);
    const float scale = 1 / sqrtf(variance / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[j] = (bfloat16)(((float)in[j] - mean) * scale * (float)gamma[j] + (float)beta[j]);
    }
  }
}
