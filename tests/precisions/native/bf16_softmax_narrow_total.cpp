// Softmax whose sum is rounded to bfloat16 at the end.
#include <cmath>
#include <cstddef>

extern "C" void softmax_bf16(int M, int N, const bfloat16* x, bfloat16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const bfloat16* in = x + (size_t)i * N;
    bfloat16* out = y + (size_t)i * N;
    float top = -INFINITY;
    for (int j = 0; j < N; ++j) top = fmaxf(top, (float)in[j]);
    float total = 0;
    for (int j = 0; j < N; ++j) total += expf((float)in[j] - top);
    const bfloat16 rounded = (bfloat16)total;
    for (int j = 0; j < N; ++j) out[j] = (bfloat16)(expf((float)in[j] - top) / (float)rounded);
  }
}
