// Calls itself until the stack is full.
__attribute__((noinline)) static int deeper(volatile char* above) {
    volatile char here[4096];
    here[0] = static_cast<char>(above[0] + 1);
    const int found = deeper(here);
    return found + here[0];
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    volatile char first = 0;
    C[0] = static_cast<float>(deeper(&first));
}
