// Leaves its last rows to the time in which the next pattern is prepared, which is not counted.
/*---
[prepare]
bytes = "0"
---*/
static void (*unfinished)();
static int rows, width;
static const int *starts, *columns;
static const float *factors, *dense;
static float* answer;

static void work(int from, int to) {
    for (int i = from; i < to; ++i)
        for (int n = 0; n < width; ++n) {
            float sum = 0.0f;
            for (int p = starts[i]; p < starts[i + 1]; ++p)
                sum += factors[p] * dense[(long)columns[p] * width + n];
            answer[(long)i * width + n] = sum;
        }
}

static void finish() { work(rows / 2, rows); }

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    if (unfinished) unfinished();
    unfinished = nullptr;
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    rows = M, width = N, starts = indptr, columns = indices;
    factors = values, dense = B, answer = C;
    work(0, M / 2);
    unfinished = finish;
}
