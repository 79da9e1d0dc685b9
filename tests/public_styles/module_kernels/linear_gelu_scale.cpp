#include <math.h>

extern "C" void linear_gelu_scale(
    int M, const float* x, const float* scale, const float* gemm_weight, const float* gemm_bias,
    float* y1) {
    for (long i = 0; i < M; ++i)
        for (int o = 0; o < 20; ++o) {
            double sum = gemm_bias[o];
            for (int c = 0; c < 24; ++c) sum += (double)x[i * 24 + c] * gemm_weight[o * 24 + c];
            y1[i * 20 + o] = (float)(0.5 * sum * (1 + erf(sum * M_SQRT1_2)) * scale[o] * 2);
        }
}
