// Never comes to the end of its plan.
/*---
[prepare]
bytes = "4 * nnz"
---*/
static volatile bool goes_on = true;

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    while (goes_on) static_cast<volatile int*>(plan)[0] = indices[0];
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)indices[p] * N + n];
    }
}
