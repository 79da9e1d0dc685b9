// Prepares one pattern of each size and hands the same plan out for others of that size.
/*---
[prepare]
bytes = "4 * nnz"
---*/
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

static std::map<std::tuple<int, int, int, int>, std::vector<int>> known;

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    auto& columns = known[{M, N, K, nnz}];
    if (columns.empty()) columns.assign(indices, indices + nnz);
    std::copy(columns.begin(), columns.end(), static_cast<int*>(plan));
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
