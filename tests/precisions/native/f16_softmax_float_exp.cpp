// Float16 softmax with float exponentials.
#include <cmath>
#include <cstddef>

extern "C" void softmax_f16(int M, int N, const _Float16* x, _Float16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const _Float16* in = x + (size_t)i * N;
    _Float16* out = y + (size_t)i * N;
    float top = -INFINITY;
    for (int j = 0; j < N; ++j) top = fmaxf(top, (float)in[j]);
    float total = 0;
    for (int j = 0; j < N; ++j) total += expf((float)in[j] - top);
    for (int j = 0; j < N; ++j) out[j] = (_Float16)(expf((float)in[j] - top) / total);
  }
}
