// Rmsnorm whose 1 / rms is rounded to bfloat16.
#include <cmath>
#include <cstddef>

extern "C" void rmsnorm_bf16(int M, int N, const bfloat16* x, const bfloat16* gamma, bfloat16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const bfloat16* in = x + (size_t)i * N;
    bfloat16* out = y + (size_t)i * N;
    float squares = 0;
    for (int j = 0; j < N; ++j) squares += (float)in[j] * (float)in[j];
    const bfloat16 scale = (bfloat16)(1 / sqrtf(squares / N + 1e-6f));
    for (int j = 0; j < N; ++j) out[j] = (bfloat16)((float)in[j] * (float)scale * (float)gamma[j]);
  }
}
