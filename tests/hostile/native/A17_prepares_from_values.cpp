// Asks to be given the values as it prepares.
/*---
[prepare]
bytes = "4 * nnz"
---*/
#include <algorithm>

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, const float* values, void* plan) {
    std::copy(values, values + nnz, static_cast<float*>(plan));
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)indices[p] * N + n];
    }
}
