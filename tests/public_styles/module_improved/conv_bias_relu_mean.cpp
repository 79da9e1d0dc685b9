extern "C" void conv_bias_relu_mean(
    int M, const float* __restrict x, const float* __restrict bias,
    const float* __restrict conv_weight, const float* __restrict conv_bias,
    float* __restrict y1) {
#pragma omp parallel for if (M > 32)
    for (long i = 0; i < M; ++i)
        for (int o = 0; o < 4; ++o) {
            float mean = 0;
            for (int r = 0; r < 7; ++r) {
                float sums[7];
                for (int s = 0; s < 7; ++s) sums[s] = conv_bias[o] + bias[o];
                for (int c = 0; c < 3; ++c)
                    for (int a = 0; a < 3; ++a)
                        for (int b = 0; b < 3; ++b) {
                            const float by = conv_weight[((o * 3 + c) * 3 + a) * 3 + b];
                            const float* in = x + ((i * 3 + c) * 9 + r + a) * 9 + b;
#pragma omp simd
                            for (int s = 0; s < 7; ++s) sums[s] += by * in[s];
                        }
                for (int s = 0; s < 7; ++s) mean += sums[s] > 0 ? sums[s] : 0;
            }
            y1[i * 4 + o] = mean / 49;
        }
}
