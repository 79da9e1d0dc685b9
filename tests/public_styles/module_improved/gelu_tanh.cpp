#include <math.h>

extern "C" void gelu_tanh(int M, int N, const float* __restrict x, float* __restrict y1) {
    const long count = (long)M * N;
#pragma omp parallel for if (count > 5000)
    for (long i = 0; i < count; ++i) {
        const double v = x[i], inner = 0.7978845608028654 * (v + 0.044715 * v * v * v);
        y1[i] = (float)(0.5 * v * (1 + tanh(inner)));
    }
}
