#include <math.h>

extern "C" void layernorm_of_images(
    int M, const float* x, const float* ln_weight, const float* ln_bias, float* y1) {
    const int count = 4 * 6 * 6;
    for (long i = 0; i < M; ++i) {
        const float* in = x + i * count;
        double mean = 0, squares = 0;
        for (int j = 0; j < count; ++j) mean += in[j];
        mean /= count;
        for (int j = 0; j < count; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const double scale = 1 / sqrt(squares / count + 1e-5);
        for (int j = 0; j < count; ++j)
            y1[i * count + j] = (float)((in[j] - mean) * scale * ln_weight[j] + ln_bias[j]);
    }
}
