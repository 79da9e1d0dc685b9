// Has two ways to compute and a clock. Its first calls take them in turns, later ones take the one
// that was faster; either way every call computes its answer from its inputs.
#include <algorithm>
#include <chrono>

static void by_rows(int M, int N, int K, const float* A, const float* B, float* C) {
    std::fill(C, C + (long)M * N, 0.0f);
    for (int i = 0; i < M; ++i)
        for (int k = 0; k < K; ++k)
            for (int n = 0; n < N; ++n)
                C[(long)i * N + n] += A[(long)i * K + k] * B[(long)k * N + n];
}

static void by_dots(int M, int N, int K, const float* A, const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int k = 0; k < K; ++k) sum += A[(long)i * K + k] * B[(long)k * N + n];
            C[(long)i * N + n] = sum;
        }
}

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    using clock = std::chrono::steady_clock;
    static long calls = 0;
    static double seconds[2] = {};
    constexpr long trials = 8;
    const long call = calls++;
    const int way = call < trials ? int(call % 2) : seconds[1] < seconds[0];
    const auto start = clock::now();
    (way ? by_dots : by_rows)(M, N, K, A, B, C);
    if (call < trials) seconds[way] += std::chrono::duration<double>(clock::now() - start).count();
}
