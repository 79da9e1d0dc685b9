extern "C" void depthwise_conv2d(int M, const float* x, const float* conv2d_weight, float* y1) {
    for (long i = 0; i < M; ++i)
        for (int c = 0; c < 4; ++c)
            for (int r = 0; r < 10; ++r)
                for (int s = 0; s < 8; ++s) {
                    double sum = 0;
                    for (int a = 0; a < 3; ++a)
                        for (int b = 0; b < 3; ++b)
                            sum += (double)x[((i * 4 + c) * 12 + r + a) * 10 + s + b] *
                                   conv2d_weight[(c * 3 + a) * 3 + b];
                    y1[((i * 4 + c) * 10 + r) * 8 + s] = (float)sum;
                }
}
