// Fetches the column of the next entry ahead, of the last one, too.
/*---
[prepare]
bytes = "4 * nnz"
---*/
#include <algorithm>

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    std::copy(indices, indices + nnz, static_cast<int*>(plan));
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    const int* columns = static_cast<const int*>(plan);
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        int next = columns[indptr[i]];
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const long k = next;
            next = columns[p + 1];
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[k * N + n];
        }
    }
}
