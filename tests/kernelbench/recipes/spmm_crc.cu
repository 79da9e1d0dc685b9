/*---
language = "cuda"

[knobs]
ROWS = 4

[[launch]]
kernel = "spmm_crc"
grid = ["cdiv(M, ROWS)", "cdiv(N, 32)"]
block = [32, "ROWS"]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]
---*/
// Coalesced row caching, after GE-SpMM (Huang et al., SC'20): the lanes of a warp, each with a
// column of the same row of C, read 32 entries of the row side by side into shared memory and then
// all go along them.

constexpr int ROWS = 4;  // warps, and so rows, per block

extern "C" __global__ void __launch_bounds__(32 * ROWS)
spmm_crc(int M, int N, const int* __restrict__ indptr, const int* __restrict__ indices,
         const float* __restrict__ values, const float* __restrict__ B, float* __restrict__ C) {
    __shared__ int columns[ROWS][32];
    __shared__ float weights[ROWS][32];
    const int warp = threadIdx.y, lane = threadIdx.x;
    const int row = blockIdx.x * ROWS + warp, column = blockIdx.y * 32 + lane;
    if (row >= M) return;  // a whole warp
    const int begin = indptr[row], end = indptr[row + 1];
    float sum = 0.0f;
    for (int tile = begin; tile < end; tile += 32) {
        __syncwarp();
        if (tile + lane < end) {
            columns[warp][lane] = indices[tile + lane];
            weights[warp][lane] = values[tile + lane];
        }
        __syncwarp();
        // A sum for each tile: one chain over a long row would lose too many digits.
        float part = 0.0f;
        if (column < N)
            for (int k = 0; k < min(32, end - tile); ++k)
                part += weights[warp][k] * B[(long long)columns[warp][k] * N + column];
        sum += part;
    }
    if (column < N) C[(long long)row * N + column] = sum;
}
