#include <math.h>

extern "C" void linear_gelu_scale(
    int M, const float* __restrict x, const float* __restrict scale,
    const float* __restrict gemm_weight, const float* __restrict gemm_bias,
    float* __restrict y1) {
    float across[24][20];  // the weights, an input a row
    for (int o = 0; o < 20; ++o)
        for (int c = 0; c < 24; ++c) across[c][o] = gemm_weight[o * 24 + c];
#pragma omp parallel for if (M > 128)
    for (long i = 0; i < M; ++i) {
        float sums[20];
        for (int o = 0; o < 20; ++o) sums[o] = gemm_bias[o];
        for (int c = 0; c < 24; ++c) {
            const float by = x[i * 24 + c];
#pragma omp simd
            for (int o = 0; o < 20; ++o) sums[o] += by * across[c][o];
        }
        for (int o = 0; o < 20; ++o)
            y1[i * 20 + o] = sums[o] * (1 + erff(sums[o] * (float)M_SQRT1_2)) * scale[o];
    }
}
