/*---
[[launch]]
zero = "next"

[[launch]]
kernel = "sddmm_queue"
when = "nnz > 0"
grid = ["min(64, cdiv(M, 4))"]
block = [128]
args = ["M", "D", "indptr", "indices", "U", "V", "E", "next"]

[scratch.next]
shape = [1]
dtype = "int32"
---*/
// Style: persistent blocks that take rows from a queue, a counter in global memory.
#include <stdint.h>
#define WARP 32
#define ALL 0xFFFFFFFFu

__device__ __forceinline__ int take(int *counter) {
  int mine = 0;
  if ((threadIdx.x & (WARP - 1)) == 0) mine = atomicAdd(counter, 1);
  return __shfl_sync(ALL, mine, 0);
}

extern "C" __global__ void sddmm_queue(int rows, int d, const int *__restrict__ indptr,
                                       const int *__restrict__ indices, const float *__restrict__ u,
                                       const float *__restrict__ v, float *__restrict__ out,
                                       int *counter) {
  const int lane = threadIdx.x & (WARP - 1);
  for (int row = take(counter); row < rows; row = take(counter)) {
    const float *left = u + static_cast<size_t>(row) * d;
    for (int p = indptr[row]; p < indptr[row + 1]; ++p) {
      const float *right = v + static_cast<size_t>(indices[p]) * d;
      float sum = 0.f;
      for (int i = lane; i < d; i += WARP) sum = fmaf(left[i], __ldg(right + i), sum);
      for (int w = WARP / 2; w; w >>= 1) sum += __shfl_xor_sync(ALL, sum, w);
      if (lane == 0) out[p] = sum;
    }
  }
}
