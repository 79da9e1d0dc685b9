/*---
[[launch]]
zero = "y"

[[launch]]
kernel = "spmv_coo_segments"
when = "nnz > 0"
grid = ["cdiv(nnz, 256)"]
block = [256]
args = ["M", "nnz", "indptr", "indices", "values", "x", "y"]
---*/
// Style: entries shared out evenly, a segmented scan in each warp, atomics where a row goes on.
#include <thrust/device_vector.h>
#include <cusparse.h>

extern "C" __global__ void spmv_coo_segments(int m, int nnz, const int* __restrict__ indptr,
                                             const int* __restrict__ indices,
                                             const float* __restrict__ values,
                                             const float* __restrict__ x, float* __restrict__ y) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x & 31;
  int row = INT_MAX;
  float sum = 0.0f;
  if (p < nnz) {
    int low = 0, high = m - 1;
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (indptr[middle + 1] <= p) low = middle + 1; else high = middle;
    }
    row = low;
    sum = values[p] * x[indices[p]];
  }
#pragma unroll
  for (int step = 1; step < 32; step <<= 1) {
    const float left = __shfl_up_sync(0xffffffffu, sum, step);
    const int left_row = __shfl_up_sync(0xffffffffu, row, step);
    if (lane >= step && left_row == row) sum += left;
  }
  const int next = __shfl_down_sync(0xffffffffu, row, 1);
  if (row != INT_MAX && (lane == 31 || next != row)) atomicAdd(&y[row], sum);
}
