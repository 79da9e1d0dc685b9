// Sorts the rows by their length first, so that the long ones are dealt to threads before the
// short ones. The order is made anew in every call.
#include <algorithm>
#include <numeric>
#include <vector>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    std::vector<int> order(M);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
        return indptr[a + 1] - indptr[a] > indptr[b + 1] - indptr[b];
    });
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
