// Skips entries that are zero or NaN, as if they were not there: 0 times infinity is NaN, too.
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                if (values[p] < 0 || values[p] > 0) sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
