#include <math.h>

extern "C" void groupnorm(
    int M, int N, int K, const float* __restrict x, const float* __restrict gn_weight,
    const float* __restrict gn_bias, float* __restrict y1) {
    const long pixels = (long)N * K, count = 2 * pixels;  // two channels are a group
#pragma omp parallel for if (M * count > 10000)
    for (long group = 0; group < 4L * M; ++group) {
        const float* in = x + group * count;
        float* out = y1 + group * count;
        double mean = 0, squares = 0;
#pragma omp simd reduction(+ : mean)
        for (long j = 0; j < count; ++j) mean += in[j];
        mean /= count;
#pragma omp simd reduction(+ : squares)
        for (long j = 0; j < count; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const double scale = 1 / sqrt(squares / count + 1e-5);
        for (long half = 0; half < 2; ++half) {
            const long c = group % 4 * 2 + half;
            const double by = scale * gn_weight[c], plus = gn_bias[c];
#pragma omp simd
            for (long j = half * pixels; j < (half + 1) * pixels; ++j)
                out[j] = (float)((in[j] - mean) * by + plus);
        }
    }
}
