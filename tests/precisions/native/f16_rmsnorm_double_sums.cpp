// Float16 rmsnorm with squares summed in double.
#include <cmath>
#include <cstddef>

extern "C" void rmsnorm_f16(int M, int N, const _Float16* x, const _Float16* gamma, _Float16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const _Float16* in = x + (size_t)i * N;
    _Float16* out = y + (size_t)i * N;
    double squares = 0;
    for (int j = 0; j < N; ++j) squares += (double)in[j] * (double)in[j];
    const float scale = (float)(1 / sqrt(squares / N + 1e-6));
    for (int j = 0; j < N; ++j) out[j] = (_Float16)((float)in[j] * scale * (float)gamma[j]);
  }
}
