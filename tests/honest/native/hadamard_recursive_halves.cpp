// By halves, each of which calls itself: H of a row is H of the sums, then H of the differences.
#include <cmath>

static void transform(float* y, int n) {
    if (n == 1) return;
    for (int i = 0; i < n / 2; ++i) {
        const float a = y[i], b = y[i + n / 2];
        y[i] = a + b;
        y[i + n / 2] = a - b;
    }
    transform(y, n / 2);
    transform(y + n / 2, n / 2);
}

extern "C" void hadamard_transform(int M, int N, const float* x, float* y) {
#pragma omp parallel for
    for (int i = 0; i < M; ++i) {
        float* row = y + (long)i * N;
        for (int j = 0; j < N; ++j) row[j] = x[(long)i * N + j] / std::sqrt((float)N);
        transform(row, N);
    }
}
