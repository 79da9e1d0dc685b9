/*---
language = "cuda"

[knobs]
THREADS = 128

[[launch]]
zero = "C"

[[launch]]
kernel = "scatter"
grid = ["max(1, cdiv(nnz, THREADS))", "N"]
block = ["THREADS"]
args = ["M", "N", "nnz", "indptr", "indices", "values", "B", "C"]
when = "nnz > 0"
---*/
constexpr int THREADS = 128;

// An entry to a thread; its row is found by bisection, its product added atomically.
extern "C" __global__ void scatter(int M, int N, int nnz, const int* __restrict__ indptr,
                                   const int* __restrict__ indices,
                                   const float* __restrict__ values, const float* __restrict__ B,
                                   float* C) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= nnz) return;
    int low = 0, high = M;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (indptr[middle] <= p) low = middle;
        else high = middle;
    }
    atomicAdd(C + (long long)low * N + blockIdx.y,
              values[p] * B[(long long)indices[p] * N + blockIdx.y]);
}
