extern "C" void batched_product(
    int M, int N, int K, int L, const float* A, const float* B, float* y1) {
    for (long i = 0; i < M; ++i)
        for (long row = 0; row < N; ++row)
            for (long column = 0; column < L; ++column) {
                double sum = 0;
                for (long k = 0; k < K; ++k)
                    sum += (double)A[(i * N + row) * K + k] * B[(i * K + k) * L + column];
                y1[(i * N + row) * L + column] = (float)sum;
            }
}
