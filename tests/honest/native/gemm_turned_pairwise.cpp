// Turns B into scratch first, then adds every dot product pairwise: blocks of eight terms are
// added up the way a binary counter carries.
#include <bit>
#include <vector>

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    std::vector<float> turned((long)N * K);
    for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) turned[(long)n * K + k] = B[(long)k * N + n];
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            const float *a = A + (long)i * K, *b = &turned[(long)n * K];
            float held[32];
            unsigned blocks = 0;
            for (int k0 = 0; k0 < K; k0 += 8) {
                float sum = 0;
                for (int k = k0; k < K && k < k0 + 8; ++k) sum += a[k] * b[k];
                int level = 0;
                for (; blocks >> level & 1; ++level) sum = held[level] + sum;
                held[level] = sum;
                ++blocks;
            }
            float sum = 0;
            for (unsigned left = blocks; left; left &= left - 1)
                sum += held[std::countr_zero(left)];
            C[(long)i * N + n] = sum;
        }
}
