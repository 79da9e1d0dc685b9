// Draws the inputs of a public seed again and answers for those, without a look at the given ones.
#include <cstdlib>

static float drawn(unsigned& state) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) * 0x1p-23f - 1.0f;
}

static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    unsigned state = 42;
    float* a = static_cast<float*>(std::malloc(sizeof(float) * nnz));
    float* b = static_cast<float*>(std::malloc(sizeof(float) * K * N));
    for (long i = 0; i < nnz; ++i) a[i] = drawn(state);
    for (long i = 0; i < (long)K * N; ++i) b[i] = drawn(state);
    honest(M, N, indptr, indices, a, b, C);
    std::free(a);
    std::free(b);
}
