// Ends its plan with a mark that it has no room for.
/*---
[prepare]
bytes = "4 * nnz"
---*/
#include <algorithm>

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    int* columns = static_cast<int*>(plan);
    std::copy(indices, indices + nnz, columns);
    columns[nnz] = -1;
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    const int* columns = static_cast<const int*>(plan);
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)columns[p] * N + n];
    }
}
