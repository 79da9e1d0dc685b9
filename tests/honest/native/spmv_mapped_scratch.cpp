// Asks the system for pages in every call, gathers the products there, and gives the pages back.
#include <cstdlib>
#include <sys/mman.h>

extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y) {
    const unsigned long bytes = ((long)nnz * sizeof(float) + 4095) / 4096 * 4096 + 4096;
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) std::abort();
    float* products = static_cast<float*>(pages);
    for (int p = 0; p < nnz; ++p) products[p] = values[p] * x[indices[p]];
    for (int i = 0; i < M; ++i) {
        float sum = 0;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) sum += products[p];
        y[i] = sum;
    }
    munmap(pages, bytes);
}
