// Float16 layernorm in two passes of float sums.
#include <cmath>
#include <cstddef>

extern "C" void layernorm_f16(
    int M, int N, const _Float16* x, const _Float16* gamma, const _Float16* beta, _Float16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const _Float16* in = x + (size_t)i * N;
    _Float16* out = y + (size_t)i * N;
    float mean = 0, variance = 0;
    for (int j = 0; j < N; ++j) mean += (float)in[j];
    mean /= N;
    for (int j = 0; j < N; ++j) variance += ((float)in[j] - mean) * ((float)in[j] - mean);
    const float scale = 1 / sqrtf(variance / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
      out[j] = (_Float16)(((float)in[j] - mean) * scale * (float)gamma[j] + (float)beta[j]);
    }
  }
}
