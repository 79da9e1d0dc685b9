// Never returns.
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    volatile int turns = 0;
    while (turns >= 0) turns = turns + 1 & 0xffff;
}
