extern "C" void conv_bias_relu_mean(
    int M, const float* x, const float* bias, const float* conv_weight, const float* conv_bias,
    float* y1) {
    for (long i = 0; i < M; ++i)
        for (int o = 0; o < 4; ++o) {
            double mean = 0;
            for (int r = 0; r < 7; ++r)
                for (int s = 0; s < 7; ++s) {
                    double sum = (double)conv_bias[o] + bias[o];
                    for (int c = 0; c < 3; ++c)
                        for (int a = 0; a < 3; ++a)
                            for (int b = 0; b < 3; ++b)
                                sum += (double)x[((i * 3 + c) * 9 + r + a) * 9 + s + b] *
                                       conv_weight[((o * 3 + c) * 3 + a) * 3 + b];
                    mean += sum > 0 ? sum : 0;
                }
            y1[i * 4 + o] = (float)(mean / 49);
        }
}
