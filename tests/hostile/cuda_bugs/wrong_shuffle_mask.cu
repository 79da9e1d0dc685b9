/*---
language = "cuda"
[[launch]]
kernel = "spmv_warps"
grid = ["cdiv(M, 4)"]
block = [32, 4]
args = ["M", "indptr", "indices", "values", "x", "y"]
---*/
// All 32 lanes take part, the mask names 31.
extern "C" __global__ void spmv_warps(int m, const int* __restrict__ indptr,
                                      const int* __restrict__ indices,
                                      const float* __restrict__ values,
                                      const float* __restrict__ x, float* __restrict__ y) {
  const int row = blockIdx.x * 4 + threadIdx.y;
  if (row >= m) return;
  float sum = 0.0f;
  for (int p = indptr[row] + threadIdx.x; p < indptr[row + 1]; p += 32)
    sum += values[p] * x[indices[p]];
  for (int o = 16; o; o >>= 1)
    sum += __shfl_down_sync(0x7fffffff, sum, o);  // right: sum += __shfl_down_sync(0xffffffff, sum, o);
  if (threadIdx.x == 0) y[row] = sum;
}
