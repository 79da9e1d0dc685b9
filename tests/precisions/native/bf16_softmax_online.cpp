// Bfloat16 softmax in one pass over its input, rescaled as the maximum grows.
#include <cmath>
#include <cstddef>

extern "C" void softmax_bf16(int M, int N, const bfloat16* x, bfloat16* y) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const bfloat16* in = x + (size_t)i * N;
    bfloat16* out = y + (size_t)i * N;
    float top = -INFINITY, total = 0;
    for (int j = 0; j < N; ++j) {
      const float value = (float)in[j];
      if (value > top) {
        total = total * expf(top - value) + 1;
        top = value;
      } else {
        total += value == -INFINITY ? 0.0f : expf(value - top);
      }
    }
    for (int j = 0; j < N; ++j) out[j] = (bfloat16)(expf((float)in[j] - top) / total);
  }
}
