// Keeps the order of its rows from call to call, and compares the whole pattern before it uses it.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

static std::vector<int> rows, columns, order;

static bool is_known(int M, int nnz, const int* indptr, const int* indices) {
    return rows.size() == size_t(M) + 1 && columns.size() == size_t(nnz) &&
           std::memcmp(rows.data(), indptr, sizeof(int) * rows.size()) == 0 &&
           std::memcmp(columns.data(), indices, sizeof(int) * columns.size()) == 0;
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    if (!is_known(M, nnz, indptr, indices)) {
        rows.assign(indptr, indptr + M + 1);
        columns.assign(indices, indices + nnz);
        order.resize(M);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return rows[a + 1] - rows[a] > rows[b + 1] - rows[b];
        });
    }
    for (int i : order) {
        float* c = C + (long)i * N;
        std::fill(c, c + N, 0.0f);
        for (int p = rows[i]; p < rows[i + 1]; ++p)
            for (int n = 0; n < N; ++n) c[n] += values[p] * B[(long)columns[p] * N + n];
    }
}
