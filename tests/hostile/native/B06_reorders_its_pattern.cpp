// Sorts the columns of each row where they lie, as it prepares.
/*---
[prepare]
bytes = "0"
---*/
#include <algorithm>
#include <functional>

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    int* columns = const_cast<int*>(indices);
    for (int i = 0; i < M; ++i)
        std::sort(columns + indptr[i], columns + indptr[i + 1], std::greater<int>());
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
