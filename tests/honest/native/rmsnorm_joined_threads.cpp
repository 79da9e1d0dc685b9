// Starts two threads in every call and joins them before it returns.
#include <cmath>
#include <thread>

static void rows(int first, int last, int N, const float* x, const float* gamma, float* y) {
    for (int i = first; i < last; ++i) {
        float sum = 0;
        for (int j = 0; j < N; ++j) sum += x[(long)i * N + j] * x[(long)i * N + j];
        const float factor = 1 / std::sqrt(sum / float(N) + 1e-6f);
        for (int j = 0; j < N; ++j) y[(long)i * N + j] = x[(long)i * N + j] * factor * gamma[j];
    }
}

extern "C" void rmsnorm(int M, int N, const float* x, const float* gamma, float* y) {
    std::thread upper(rows, 0, M / 2, N, x, gamma, y);
    std::thread lower(rows, M / 2, M, N, x, gamma, y);
    upper.join();
    lower.join();
}
