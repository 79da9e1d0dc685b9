// Divides by zero.
#include <csignal>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    volatile int zero = 0;
    C[0] = static_cast<float>(M / zero);
    std::raise(SIGFPE);  // not every processor traps
}
