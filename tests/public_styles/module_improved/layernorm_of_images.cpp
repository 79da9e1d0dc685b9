#include <math.h>

extern "C" void layernorm_of_images(
    int M, const float* __restrict x, const float* __restrict ln_weight,
    const float* __restrict ln_bias, float* __restrict y1) {
    constexpr int count = 4 * 6 * 6;
#pragma omp parallel for if (M > 256)
    for (long i = 0; i < M; ++i) {
        const float* in = x + i * count;
        double mean = 0, squares = 0;
#pragma omp simd reduction(+ : mean)
        for (int j = 0; j < count; ++j) mean += in[j];
        mean /= count;
#pragma omp simd reduction(+ : squares)
        for (int j = 0; j < count; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const double scale = 1 / sqrt(squares / count + 1e-5);
#pragma omp simd
        for (int j = 0; j < count; ++j)
            y1[i * count + j] = (float)((in[j] - mean) * scale) * ln_weight[j] + ln_bias[j];
    }
}
