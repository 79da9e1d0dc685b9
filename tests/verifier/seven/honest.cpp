// Row-parallel SpMM, as anybody would write it.
#include <cstring>
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < M; ++i) {
        float* __restrict__ row = C + (long)i * N;
        std::memset(row, 0, sizeof(float) * N);
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const float* __restrict__ b = B + (long)indices[p] * N;
            const float a = values[p];
#pragma omp simd
            for (int n = 0; n < N; ++n) row[n] += a * b[n];
        }
    }
}
