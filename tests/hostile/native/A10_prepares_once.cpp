// Prepares the first pattern it ever sees, keeps it for itself and passes over all others.
/*---
[prepare]
bytes = "0"
---*/
#include <vector>

static std::vector<int> columns;

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    if (columns.empty()) columns.assign(indices, indices + nnz);
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    const int kept = (int)columns.size();
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const int k = kept ? columns[p % kept] % K : 0;
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)k * N + n];
        }
    }
}
