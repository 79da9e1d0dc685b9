extern "C" void centred_product(
    int M, int N, int K, const float* x, const float* w, const float* bias, float* y1) {
    for (long i = 0; i < M; ++i) {
        double mean = 0;
        for (long j = 0; j < N; ++j) mean += x[i * N + j];
        mean /= N;
        for (long k = 0; k < K; ++k) {
            double sum = bias[k];
            for (long j = 0; j < N; ++j) sum += (x[i * N + j] - mean) * w[j * K + k];
            y1[i * K + k] = (float)(sum > 0 ? sum : 0);
        }
    }
}
