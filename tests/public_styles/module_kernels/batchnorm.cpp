#include <math.h>

extern "C" void batchnorm(
    int M, int N, int K, const float* x, const float* bn_weight, const float* bn_bias, float* y1) {
    const long pixels = (long)N * K;
    for (long c = 0; c < 6; ++c) {
        double mean = 0, squares = 0;
        for (long i = 0; i < M; ++i)
            for (long p = 0; p < pixels; ++p) mean += x[(i * 6 + c) * pixels + p];
        mean /= M * pixels;
        for (long i = 0; i < M; ++i)
            for (long p = 0; p < pixels; ++p) {
                const double off = x[(i * 6 + c) * pixels + p] - mean;
                squares += off * off;
            }
        const double scale = 1 / sqrt(squares / (M * pixels) + 1e-5);
        for (long i = 0; i < M; ++i)
            for (long p = 0; p < pixels; ++p) {
                const long at = (i * 6 + c) * pixels + p;
                y1[at] = (float)((x[at] - mean) * scale * bn_weight[c] + bn_bias[c]);
            }
    }
}
