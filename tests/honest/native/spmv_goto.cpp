// One loop over entries instead of two nested ones, with jumps between its states.
extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y) {
    int row = 0, p = 0;
    float sum = 0;
next_row:
    if (row == M) return;
    sum = 0;
next_entry:
    if (p == indptr[row + 1]) goto store;
    sum += values[p] * x[indices[p]];
    ++p;
    goto next_entry;
store:
    y[row++] = sum;
    goto next_row;
}
