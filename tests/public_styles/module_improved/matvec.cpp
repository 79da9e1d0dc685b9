extern "C" void matvec(
    int M, int N, const float* __restrict A, const float* __restrict B, float* __restrict y1) {
    const long fours = M / 4;
#pragma omp parallel for if ((long)M * N > 50000)
    for (long four = 0; four <= fours; ++four) {
        const long i = four * 4;
        if (four < fours) {
            const float *a = A + i * N, *b = a + N, *c = b + N, *d = c + N;
            float sa = 0, sb = 0, sc = 0, sd = 0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
            for (long j = 0; j < N; ++j) {
                sa += a[j] * B[j], sb += b[j] * B[j];
                sc += c[j] * B[j], sd += d[j] * B[j];
            }
            y1[i] = sa, y1[i + 1] = sb, y1[i + 2] = sc, y1[i + 3] = sd;
            continue;
        }
        for (long row = i; row < M; ++row) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (long j = 0; j < N; ++j) sum += A[row * N + j] * B[j];
            y1[row] = sum;
        }
    }
}
