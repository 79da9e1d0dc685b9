// Adds a row by halving it again and again, down to a few entries: pairwise summation.
static float part(const int* indices, const float* values, const float* x, int first, int last) {
    if (last - first <= 4) {
        float sum = 0;
        for (int p = first; p < last; ++p) sum += values[p] * x[indices[p]];
        return sum;
    }
    const int middle = first + (last - first) / 2;
    return part(indices, values, x, first, middle) + part(indices, values, x, middle, last);
}

extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y) {
    for (int i = 0; i < M; ++i) y[i] = part(indices, values, x, indptr[i], indptr[i + 1]);
}
