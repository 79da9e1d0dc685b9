// Codes as floats, whose sums are whole numbers below 2^24 and so as exact as those of integers;
// blocks of 512 keep them there.
extern "C" void w8a8_linear(int M, int N, int K, const signed char* x, const signed char* w,
                            const float* sx, const float* sw, const float* bias, float* y) {
#pragma omp parallel for
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            const signed char *a = x + (long)i * K, *b = w + (long)j * K;
            double total = 0;
            for (int k = 0; k < K; k += 512) {
                float part = 0;
                for (int l = k; l < K && l < k + 512; ++l) part += float(a[l]) * float(b[l]);
                total += part;
            }
            y[(long)i * N + j] = float(total) * (sx[i] * sw[j]) + bias[j];
        }
}
