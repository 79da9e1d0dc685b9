/*---
[knobs]
ITEMS = 7
BLOCK = 64

[[launch]]
kernel = "merge::spmv_merge"
grid = ["cdiv(M + nnz, ITEMS * BLOCK)"]
block = ["BLOCK"]
args = ["M", "nnz", "indptr", "indices", "values", "x", "y", "carry_row", "carry_sum"]

[[launch]]
kernel = "merge::add_carries"
grid = [1]
block = [1]
args = ["M", "cdiv(M + nnz, ITEMS * BLOCK) * BLOCK", "carry_row", "carry_sum", "y"]

[scratch.carry_row]
shape = ["cdiv(M + nnz, ITEMS * BLOCK) * BLOCK"]
dtype = "int32"

[scratch.carry_sum]
shape = ["cdiv(M + nnz, ITEMS * BLOCK) * BLOCK"]
dtype = "float32"
---*/
// Style: merge-path SpMV. Each thread finds its own diagonal, its last row is carried out.
#include <algorithm>
#include <cstdint>

namespace merge {

constexpr int ITEMS = 7;

struct Coordinate {
  int row, entry;
};

__device__ __forceinline__ Coordinate search(int diagonal, const int* row_ends, int m, int nnz) {
  int low = std::max(diagonal - nnz, 0);
  int high = std::min(diagonal, m);
  while (low < high) {
    int pivot = (low + high) >> 1;
    if (row_ends[pivot] <= diagonal - pivot - 1) {
      low = pivot + 1;
    } else {
      high = pivot;
    }
  }
  return Coordinate{std::min(low, m), diagonal - low};
}

__global__ void spmv_merge(int m, int nnz, const int* __restrict__ indptr,
                           const int* __restrict__ indices, const float* __restrict__ values,
                           const float* __restrict__ x, float* __restrict__ y,
                           int* __restrict__ carry_row, float* __restrict__ carry_sum) {
  const int* row_ends = indptr + 1;
  const int tid = blockIdx.x * blockDim.x + threadIdx.x;
  const int total = m + nnz;
  const int start = std::min(tid * ITEMS, total);
  const int stop = std::min(start + ITEMS, total);
  Coordinate at = search(start, row_ends, m, nnz);
  const Coordinate until = search(stop, row_ends, m, nnz);
  float running = 0.0f;
  for (; at.row < until.row; ++at.row) {
    for (; at.entry < row_ends[at.row]; ++at.entry) running += values[at.entry] * x[indices[at.entry]];
    y[at.row] = running;
    running = 0.0f;
  }
  for (; at.entry < until.entry; ++at.entry) running += values[at.entry] * x[indices[at.entry]];
  carry_row[tid] = until.row;
  carry_sum[tid] = running;
}

__global__ void add_carries(int m, int count, const int* carry_row, const float* carry_sum,
                            float* y) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) {
    sum += carry_sum[i];
    const bool ends = i + 1 == count || carry_row[i + 1] != carry_row[i];
    if (!ends) continue;
    if (carry_row[i] < m && sum != 0.0f) y[carry_row[i]] += sum;
    sum = 0.0f;
  }
}

}  // namespace merge
