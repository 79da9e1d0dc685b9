/*---
[prepare]
bytes = "4 * M"
---*/
// Sorts the rows by their length once for each pattern, so that calls deal the long ones to threads
// before the short ones.
#include <algorithm>
#include <numeric>

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    int* order = static_cast<int*>(plan);
    std::iota(order, order + M, 0);
    std::stable_sort(order, order + M, [&](int a, int b) {
        return indptr[a + 1] - indptr[a] > indptr[b + 1] - indptr[b];
    });
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    const int* order = static_cast<const int*>(plan);
#pragma omp parallel for schedule(dynamic, 16)
    for (int at = 0; at < M; ++at) {
        const int i = order[at];
        float* __restrict__ row = C + (long)i * N;
        std::fill(row, row + N, 0.0f);
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const float* __restrict__ b = B + (long)indices[p] * N;
            for (int n = 0; n < N; ++n) row[n] += values[p] * b[n];
        }
    }
}
