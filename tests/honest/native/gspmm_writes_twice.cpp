// Writes the whole output with a plain version of the answer, then once more: sums first and
// their product with the reciprocal of the length after that.
#include <algorithm>

extern "C" void gspmm_reduce(int M, int N, int K, int nnz, int reduce, const int* indptr,
                             const int* indices, const float* values, const float* B, float* C) {
    std::fill(C, C + (long)M * N, 0.0f);
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const float* b = B + (long)indices[p] * N;
            if (reduce == 1 || p == indptr[i])
                for (int n = 0; n < N; ++n) row[n] += values[p] * b[n];
            else
                for (int n = 0; n < N; ++n) row[n] = std::max(row[n], values[p] * b[n]);
        }
    }
    for (int i = 0; i < M; ++i) {
        const int length = indptr[i + 1] - indptr[i];
        const float factor = reduce == 1 && length > 0 ? 1.0f / float(length) : 1.0f;
        for (int n = 0; n < N; ++n) C[(long)i * N + n] *= factor;
    }
}
