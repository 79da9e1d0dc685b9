// Keeps a panel of B of one MiB on the stack.
#include <algorithm>
#include <cstring>

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    constexpr int side = 512;
    float panel[side][side];
    std::fill(C, C + (long)M * N, 0.0f);
    for (int k0 = 0; k0 < K; k0 += side)
        for (int n0 = 0; n0 < N; n0 += side) {
            const int depth = std::min(side, K - k0), width = std::min(side, N - n0);
            for (int k = 0; k < depth; ++k)
                std::memcpy(panel[k], B + (long)(k0 + k) * N + n0, sizeof(float) * width);
            for (int i = 0; i < M; ++i)
                for (int k = 0; k < depth; ++k)
                    for (int n = 0; n < width; ++n)
                        C[(long)i * N + n0 + n] += A[(long)i * K + k0 + k] * panel[k][n];
        }
}
