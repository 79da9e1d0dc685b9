extern "C" void matvec(int M, int N, const float* A, const float* B, float* y1) {
    for (long i = 0; i < M; ++i) {
        double sum = 0;
        for (long j = 0; j < N; ++j) sum += (double)A[i * N + j] * B[j];
        y1[i] = (float)sum;
    }
}
