extern "C" void conv2d(
    int M, const float* __restrict x, const float* __restrict conv2d_weight, float* __restrict y1) {
#pragma omp parallel for if (M > 64)
    for (long i = 0; i < M; ++i) {
        // The image between zeros, even columns apart from odd ones: a stride of two becomes one.
        float padded[3][14][2][6] = {};
        for (int c = 0; c < 3; ++c)
            for (int row = 0; row < 12; ++row)
                for (int column = 0; column < 10; ++column)
                    padded[c][row + 1][(column + 1) & 1][(column + 1) / 2] =
                        x[((i * 3 + c) * 12 + row) * 10 + column];
        for (int o = 0; o < 4; ++o)
            for (int r = 0; r < 6; ++r) {
                float sums[5] = {};
                for (int c = 0; c < 3; ++c)
                    for (int a = 0; a < 3; ++a)
                        for (int b = 0; b < 3; ++b) {
                            const float by = conv2d_weight[((o * 3 + c) * 3 + a) * 3 + b];
                            const float* in = padded[c][2 * r + a][b & 1] + b / 2;
#pragma omp simd
                            for (int s = 0; s < 5; ++s) sums[s] += by * in[s];
                        }
                for (int s = 0; s < 5; ++s) y1[((i * 4 + o) * 6 + r) * 5 + s] = sums[s];
            }
    }
}
