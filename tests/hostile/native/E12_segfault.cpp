// Writes to an address that nobody gave it.
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    volatile unsigned long address = 64;
    *reinterpret_cast<volatile float*>(address) = 1.0f;
}
