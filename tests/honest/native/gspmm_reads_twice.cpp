// Reads its inputs twice: once for the left half of the columns, once for the right half.
#include <algorithm>
#include <cmath>

static void columns(int M, int N, int first, int last, bool is_mean, const int* indptr,
                    const int* indices, const float* values, const float* B, float* C) {
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        const int length = indptr[i + 1] - indptr[i];
        std::fill(row + first, row + last, is_mean || length == 0 ? 0.0f : -INFINITY);
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = first; n < last; ++n) {
                const float product = values[p] * B[(long)indices[p] * N + n];
                row[n] = is_mean ? row[n] + product : std::max(row[n], product);
            }
        if (is_mean && length)
            for (int n = first; n < last; ++n) row[n] /= float(length);
    }
}

extern "C" void gspmm_reduce(int M, int N, int K, int nnz, int reduce, const int* indptr,
                             const int* indices, const float* values, const float* B, float* C) {
    columns(M, N, 0, N / 2, reduce == 1, indptr, indices, values, B, C);
    columns(M, N, N / 2, N, reduce == 1, indptr, indices, values, B, C);
}
