extern "C" void product_transposed_b(
    int M, int N, int K, const float* A, const float* B, float* y1) {
    for (long i = 0; i < M; ++i)
        for (long j = 0; j < K; ++j) {
            double sum = 0;
            for (long k = 0; k < N; ++k) sum += (double)A[i * N + k] * B[j * N + k];
            y1[i * K + j] = (float)sum;
        }
}
