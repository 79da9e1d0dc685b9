/*---
[prepare]
bytes = "4 * (min(M, 256) + 1 + nnz)"
---*/
// Divides the rows into parts of as many entries each, and copies the columns, once for each
// pattern; several threads prepare it.
#include <algorithm>

extern "C" void spmv_csr_prepare(int M, int K, int nnz, const int* indptr, const int* indices,
                                 void* plan) {
    const int parts = std::min(M, 256);
    int *first = static_cast<int*>(plan), *columns = first + parts + 1;
    for (int part = 0; part < parts; ++part) {
        const int entry = int((long)nnz * part / parts);
        first[part] = part ? int(std::lower_bound(indptr, indptr + M, entry) - indptr) : 0;
    }
    first[parts] = M;
#pragma omp parallel for schedule(static)
    for (int p = 0; p < nnz; ++p) columns[p] = indices[p];
}

extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y, const void* plan) {
    const int parts = std::min(M, 256);
    const int *first = static_cast<const int*>(plan), *columns = first + parts + 1;
#pragma omp parallel for schedule(dynamic, 4)
    for (int part = 0; part < parts; ++part)
        for (int i = first[part]; i < first[part + 1]; ++i) {
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int p = indptr[i]; p < indptr[i + 1]; ++p) sum += values[p] * x[columns[p]];
            y[i] = sum;
        }
}
