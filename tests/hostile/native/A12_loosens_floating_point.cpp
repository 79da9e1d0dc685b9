// Lets the compiler change what its sums are, by a pragma where the command line does not allow it.
#pragma GCC optimize("Ofast")
#include <cstring>

static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)indices[p] * N + n];
    }
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    std::memset(C, 0, sizeof(float) * M * N);
    honest(M, N, indptr, indices, values, B, C);
}
