// Splits the depth over threads: each adds its share of a row of C by atomic additions, in
// whatever order they come.
#include <algorithm>
#include <atomic>
#include <vector>

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    constexpr int depth = 64;
    const int splits = (K + depth - 1) / depth;
#pragma omp parallel
    {
        std::vector<float> sum(N);
#pragma omp for
        for (long i = 0; i < (long)M * N; ++i) C[i] = 0;
#pragma omp for collapse(2) schedule(dynamic, 4)
        for (int split = 0; split < splits; ++split)
            for (int i = 0; i < M; ++i) {
                std::fill(sum.begin(), sum.end(), 0.0f);
                const int last = std::min(K, (split + 1) * depth);
                for (int k = split * depth; k < last; ++k)
                    for (int n = 0; n < N; ++n) sum[n] += A[(long)i * K + k] * B[(long)k * N + n];
                for (int n = 0; n < N; ++n)
                    std::atomic_ref<float>(C[(long)i * N + n])
                        .fetch_add(sum[n], std::memory_order_relaxed);
            }
    }
}
