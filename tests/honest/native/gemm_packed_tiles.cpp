// Packs panels of A and B into tiles that are padded with zeros, in buffers kept from call to
// call, and adds tiles of 4 by 16 in registers.
#include <algorithm>
#include <vector>

namespace {

constexpr int TALL = 4, WIDE = 16, DEPTH = 256;
std::vector<float> left, right;

void pack(int M, int N, int K, int k0, int depth, const float* A, const float* B) {
    left.assign((long)(M + TALL - 1) / TALL * TALL * depth, 0.0f);
    right.assign((long)(N + WIDE - 1) / WIDE * WIDE * depth, 0.0f);
    for (int i = 0; i < M; ++i)
        for (int k = 0; k < depth; ++k)
            left[((long)(i / TALL) * depth + k) * TALL + i % TALL] = A[(long)i * K + k0 + k];
    for (int k = 0; k < depth; ++k)
        for (int n = 0; n < N; ++n)
            right[((long)(n / WIDE) * depth + k) * WIDE + n % WIDE] = B[(long)(k0 + k) * N + n];
}

void tile(int depth, const float* a, const float* b, float (&sum)[TALL][WIDE]) {
    for (auto& row : sum) std::fill(row, row + WIDE, 0.0f);
    for (int k = 0; k < depth; ++k)
        for (int i = 0; i < TALL; ++i)
            for (int n = 0; n < WIDE; ++n) sum[i][n] += a[k * TALL + i] * b[k * WIDE + n];
}

}  // namespace

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    std::fill(C, C + (long)M * N, 0.0f);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        const int depth = std::min(DEPTH, K - k0);
        pack(M, N, K, k0, depth, A, B);
        for (int i0 = 0; i0 < M; i0 += TALL)
            for (int n0 = 0; n0 < N; n0 += WIDE) {
                float sum[TALL][WIDE];
                tile(depth, &left[(long)i0 * depth], &right[(long)n0 * depth], sum);
                for (int i = i0; i < std::min(M, i0 + TALL); ++i)
                    for (int n = n0; n < std::min(N, n0 + WIDE); ++n)
                        C[(long)i * N + n] += sum[i - i0][n - n0];
            }
    }
}
