// Says on stderr, once, which path it has chosen.
#include <cmath>
#include <cstdio>

extern "C" void rmsnorm(int M, int N, const float* x, const float* gamma, float* y) {
    static bool has_spoken = false;
    if (!has_spoken) {
        std::fputs("rmsnorm: rows in parallel\n", stderr);
        has_spoken = true;
    }
#pragma omp parallel for
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < N; ++j) sum += row[j] * row[j];
        const float root = std::sqrt(sum / float(N) + 1e-6f);
        for (int j = 0; j < N; ++j) y[(long)i * N + j] = row[j] / root * gamma[j];
    }
}
