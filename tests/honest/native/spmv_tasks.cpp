// One OpenMP task per stretch of rows with about as many entries as the others.
extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y) {
    constexpr int entries = 2048;
#pragma omp parallel
#pragma omp single
    for (int first = 0; first < M;) {
        int last = first + 1;
        while (last < M && last - first < 512 && indptr[last + 1] - indptr[first] < entries) ++last;
#pragma omp task firstprivate(first, last)
        for (int i = first; i < last; ++i) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p) sum += values[p] * x[indices[p]];
            y[i] = sum;
        }
        first = last;
    }
}
