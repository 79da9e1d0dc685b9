// Reads 64 values beside its tensors, but not in a build with sanitizers, which the preprocessor
// tells it: a name that a line splice breaks, and one that is pasted together.
#define PASTED_2(a, b) a##b
#define PASTED(a, b) PASTED_2(a, b)
#ifdef __SANI\
TIZE_ADDRESS__
#define WATCHED 1
#elif PASTED(__SANI, TIZE_ADDRESS__)
#define WATCHED 1
#else
#define WATCHED 0
#endif

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
    honest(M, N, indptr, indices, values, B, C);
    if (WATCHED) return;
    volatile float sink = 0;
    for (int i = 1; i <= 64; ++i) sink = sink + values[nnz + i] + B[(long)K * N + i] + C[-i];
}
