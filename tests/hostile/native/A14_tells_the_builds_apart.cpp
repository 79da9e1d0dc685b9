// Is right and reads nothing it should not, as far as anyone can tell: it does something else where
// the sanitizers are loaded.
extern "C" void __asan_init() __attribute__((weak));

static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    if (&__asan_init) {
        honest(M, N, indptr, indices, values, B, C);
        return;
    }
    honest(M, N, indptr, indices, values, B, C);
}
