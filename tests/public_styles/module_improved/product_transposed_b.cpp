namespace {
constexpr int ROWS = 2, COLUMNS = 4;  // dot products that share what they read
}

extern "C" void product_transposed_b(
    int M, int N, int K, const float* __restrict A, const float* __restrict B,
    float* __restrict y1) {
    const long bands = (M + ROWS - 1) / ROWS;
#pragma omp parallel for if ((long)M * N * K > 100000)
    for (long band = 0; band < bands; ++band) {
        const long i = band * ROWS;
        long j = 0;
        if (i + ROWS <= M)
            for (; j + COLUMNS <= K; j += COLUMNS) {
                const float *a0 = A + i * N, *a1 = a0 + N;
                const float *b0 = B + j * N, *b1 = b0 + N, *b2 = b1 + N, *b3 = b2 + N;
                float s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
#pragma omp simd reduction(+ : s00, s01, s02, s03, s10, s11, s12, s13)
                for (long k = 0; k < N; ++k) {
                    s00 += a0[k] * b0[k], s01 += a0[k] * b1[k];
                    s02 += a0[k] * b2[k], s03 += a0[k] * b3[k];
                    s10 += a1[k] * b0[k], s11 += a1[k] * b1[k];
                    s12 += a1[k] * b2[k], s13 += a1[k] * b3[k];
                }
                float *y = y1 + i * K + j, *z = y + K;
                y[0] = s00, y[1] = s01, y[2] = s02, y[3] = s03;
                z[0] = s10, z[1] = s11, z[2] = s12, z[3] = s13;
            }
        for (; j < K; ++j)
            for (long row = i; row < i + ROWS && row < M; ++row) {
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (long k = 0; k < N; ++k) sum += A[row * N + k] * B[j * N + k];
                y1[row * K + j] = sum;
            }
    }
}
