namespace {
constexpr int ROWS = 4, COLUMNS = 16;  // of a tile whose sums stay in registers
}

extern "C" void centred_product(
    int M, int N, int K, const float* __restrict x, const float* __restrict w,
    const float* __restrict bias, float* __restrict y1) {
    const long bands = (M + ROWS - 1) / ROWS;
#pragma omp parallel for if ((long)M * N * K > 50000)
    for (long band = 0; band < bands; ++band) {
        const long row = band * ROWS, rows = M - row < ROWS ? M - row : ROWS;
        float means[ROWS];
        for (long r = 0; r < rows; ++r) {
            double sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = 0; j < N; ++j) sum += x[(row + r) * N + j];
            means[r] = (float)(sum / N);
        }
        long k = 0;
        if (rows == ROWS)
            for (; k + COLUMNS <= K; k += COLUMNS) {
                float sums[ROWS][COLUMNS] = {};
                for (long j = 0; j < N; ++j)
                    for (int r = 0; r < ROWS; ++r) {
                        const float by = x[(row + r) * N + j] - means[r];
#pragma omp simd
                        for (int c = 0; c < COLUMNS; ++c) sums[r][c] += by * w[j * K + k + c];
                    }
                for (int r = 0; r < ROWS; ++r)
                    for (int c = 0; c < COLUMNS; ++c) {
                        const float sum = sums[r][c] + bias[k + c];
                        y1[(row + r) * K + k + c] = sum > 0 ? sum : 0;
                    }
            }
        for (; k < K; ++k)
            for (long r = 0; r < rows; ++r) {
                float sum = bias[k];
                for (long j = 0; j < N; ++j)
                    sum += (x[(row + r) * N + j] - means[r]) * w[j * K + k];
                y1[(row + r) * K + k] = sum > 0 ? sum : 0;
            }
    }
}
