// Rmsnorm whose squares are float16.
#include <cmath>
#include <cstddef>

extern "C" void rmsnorm_f16(int M, int N, const _Float16* x, const _Float16* gamma, _Float16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const _Float16* in = x + (size_t)i * N;
    _Float16* out = y + (size_t)i * N;
    float squares = 0;
    for (int j = 0; j < N; ++j) {
      const _Float16 square = (_Float16)((float)in[j] * (float)in[j]);
      squares += (float)square;
    }
    const float scale = 1 / sqrtf(squares / N + 1e-6f);
    for (int j = 0; j < N; ++j) out[j] = (_Float16)((float)in[j] * scale * (float)gamma[j]);
  }
}
