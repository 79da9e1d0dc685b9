namespace {
constexpr int ROWS = 4, COLUMNS = 16;  // of a tile whose sums stay in registers
}

extern "C" void batched_product(
    int M, int N, int K, int L, const float* __restrict A, const float* __restrict B,
    float* __restrict y1) {
    const long bands = (N + ROWS - 1) / ROWS;
#pragma omp parallel for collapse(2) if ((long)M * N * K * L > 100000)
    for (long i = 0; i < M; ++i)
        for (long band = 0; band < bands; ++band) {
            const long row = band * ROWS;
            const float *a = A + (i * N + row) * K, *b = B + i * K * L;
            float* out = y1 + (i * N + row) * L;
            long column = 0;
            if (row + ROWS <= N)
                for (; column + COLUMNS <= L; column += COLUMNS) {
                    float sums[ROWS][COLUMNS] = {};
                    for (long k = 0; k < K; ++k)
                        for (int r = 0; r < ROWS; ++r) {
                            const float by = a[r * K + k];
#pragma omp simd
                            for (int c = 0; c < COLUMNS; ++c)
                                sums[r][c] += by * b[k * L + column + c];
                        }
                    for (int r = 0; r < ROWS; ++r)
                        for (int c = 0; c < COLUMNS; ++c) out[r * L + column + c] = sums[r][c];
                }
            for (; column < L; ++column)
                for (long r = 0; r < ROWS && row + r < N; ++r) {
                    float sum = 0;
                    for (long k = 0; k < K; ++k) sum += a[r * K + k] * b[k * L + column];
                    out[r * L + column] = sum;
                }
        }
}
