// Calls a library instead of computing.
extern "C" void cblas_sgemm(int order, int left, int right, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c,
                            int ldc);

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    cblas_sgemm(101, 111, 111, M, N, K, 1.0f, values, K, B, N, 0.0f, C, N);
}
