extern "C" void conv2d(int M, const float* x, const float* conv2d_weight, float* y1) {
    for (long i = 0; i < M; ++i)
        for (int o = 0; o < 4; ++o)
            for (int r = 0; r < 6; ++r)
                for (int s = 0; s < 5; ++s) {
                    double sum = 0;
                    for (int c = 0; c < 3; ++c)
                        for (int a = 0; a < 3; ++a)
                            for (int b = 0; b < 3; ++b) {
                                const int row = 2 * r + a - 1, column = 2 * s + b - 1;
                                if (row < 0 || row >= 12 || column < 0 || column >= 10) continue;
                                sum += (double)x[((i * 3 + c) * 12 + row) * 10 + column] *
                                       conv2d_weight[((o * 3 + c) * 3 + a) * 3 + b];
                            }
                    y1[((i * 4 + o) * 6 + r) * 5 + s] = (float)sum;
                }
}
