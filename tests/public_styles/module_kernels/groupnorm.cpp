#include <math.h>

extern "C" void groupnorm(
    int M, int N, int K, const float* x, const float* gn_weight, const float* gn_bias, float* y1) {
    const long pixels = (long)N * K, count = 2 * pixels;  // two channels are a group
    for (long group = 0; group < 4L * M; ++group) {
        const float* in = x + group * count;
        double mean = 0, squares = 0;
        for (long j = 0; j < count; ++j) mean += in[j];
        mean /= count;
        for (long j = 0; j < count; ++j) squares += (in[j] - mean) * (in[j] - mean);
        const double scale = 1 / sqrt(squares / count + 1e-5);
        for (long j = 0; j < count; ++j) {
            const long c = group % 4 * 2 + j / pixels;
            y1[group * count + j] = (float)((in[j] - mean) * scale * gn_weight[c] + gn_bias[c]);
        }
    }
}
