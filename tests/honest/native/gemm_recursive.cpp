// Halves the longest side until the block is small: no tile size appears anywhere.
#include <algorithm>

namespace {

struct Matrices {
    int N, K;
    const float *A, *B;
    float* C;
};

void block(const Matrices& m, int i0, int i1, int n0, int n1, int k0, int k1) {
    const int rows = i1 - i0, columns = n1 - n0, depth = k1 - k0;
    if (std::max({rows, columns, depth}) <= 32) {
        for (int i = i0; i < i1; ++i)
            for (int k = k0; k < k1; ++k)
                for (int n = n0; n < n1; ++n)
                    m.C[(long)i * m.N + n] += m.A[(long)i * m.K + k] * m.B[(long)k * m.N + n];
    } else if (rows >= std::max(columns, depth)) {
        block(m, i0, i0 + rows / 2, n0, n1, k0, k1);
        block(m, i0 + rows / 2, i1, n0, n1, k0, k1);
    } else if (columns >= depth) {
        block(m, i0, i1, n0, n0 + columns / 2, k0, k1);
        block(m, i0, i1, n0 + columns / 2, n1, k0, k1);
    } else {
        block(m, i0, i1, n0, n1, k0, k0 + depth / 2);
        block(m, i0, i1, n0, n1, k0 + depth / 2, k1);
    }
}

}  // namespace

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    std::fill(C, C + (long)M * N, 0.0f);
    block({N, K, A, B, C}, 0, M, 0, N, 0, K);
}
