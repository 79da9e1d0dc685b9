#include <math.h>

extern "C" void batchnorm(
    int M, int N, int K, const float* __restrict x, const float* __restrict bn_weight,
    const float* __restrict bn_bias, float* __restrict y1) {
    const long pixels = (long)N * K;
#pragma omp parallel for if (M * pixels > 10000)
    for (long c = 0; c < 6; ++c) {
        double mean = 0, squares = 0;
        for (long i = 0; i < M; ++i) {
            const float* in = x + (i * 6 + c) * pixels;
#pragma omp simd reduction(+ : mean)
            for (long p = 0; p < pixels; ++p) mean += in[p];
        }
        mean /= M * pixels;
        for (long i = 0; i < M; ++i) {
            const float* in = x + (i * 6 + c) * pixels;
#pragma omp simd reduction(+ : squares)
            for (long p = 0; p < pixels; ++p) squares += (in[p] - mean) * (in[p] - mean);
        }
        const double scale = bn_weight[c] / sqrt(squares / (M * pixels) + 1e-5);
        for (long i = 0; i < M; ++i) {
            const float* in = x + (i * 6 + c) * pixels;
            float* out = y1 + (i * 6 + c) * pixels;
#pragma omp simd
            for (long p = 0; p < pixels; ++p) out[p] = (float)((in[p] - mean) * scale + bn_bias[c]);
        }
    }
}
