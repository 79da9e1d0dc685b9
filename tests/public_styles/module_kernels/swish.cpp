#include <math.h>

extern "C" void swish(int M, int N, int K, int L, const float* x, float* y1) {
    const long count = (long)M * N * K * L;
    for (long i = 0; i < count; ++i) y1[i] = x[i] / (1 + expf(-x[i]));
}
