extern "C" void depthwise_conv2d(
    int M, const float* __restrict x, const float* __restrict conv2d_weight, float* __restrict y1) {
#pragma omp parallel for if (M > 64)
    for (long image = 0; image < 4L * M; ++image) {
        const float *in = x + image * 120, *by = conv2d_weight + image % 4 * 9;
        for (int r = 0; r < 10; ++r) {
            float sums[8] = {};
            for (int a = 0; a < 3; ++a)
                for (int b = 0; b < 3; ++b) {
#pragma omp simd
                    for (int s = 0; s < 8; ++s) sums[s] += by[a * 3 + b] * in[(r + a) * 10 + s + b];
                }
#pragma omp simd
            for (int s = 0; s < 8; ++s) y1[(image * 10 + r) * 8 + s] = sums[s];
        }
    }
}
