/*---
[[launch]]
kernel = "spmm_row_caching"
grid = ["M", "cdiv(N, 32)"]
block = [32]
shared_bytes = "32 * 8"
args = ["N", "indptr", "indices", "values", "B", "C"]
---*/
// Style: GE-SpMM's coalesced row caching, one warp for a row and 32 columns.
#include <cuda.h>
#include <cuda_runtime.h>

extern "C" __global__ void spmm_row_caching(int k, const int *__restrict__ rowptr,
                                            const int *__restrict__ colind,
                                            const float *__restrict__ vals,
                                            const float *__restrict__ dense, float *__restrict__ out) {
  extern __shared__ int sh[];
  int *colInd_sh = sh;
  float *val_sh = (float *)&sh[32];
  const int row = blockIdx.x, tid = threadIdx.x;
  const int col = (blockIdx.y << 5) + tid;
  const int lb = __ldg(rowptr + row), hb = __ldg(rowptr + row + 1);
  float acc = 0.0f;
  for (int jj = lb; jj < hb; jj += 32) {
    int ptr = jj + tid;
    if (ptr < hb) {
      colInd_sh[tid] = __ldg(colind + ptr);
      val_sh[tid] = __ldg(vals + ptr);
    }
    __syncwarp();
    for (int kk = 0; kk < 32 && jj + kk < hb; kk++) {
      if (col < k) acc += val_sh[kk] * __ldg(dense + (size_t)colInd_sh[kk] * k + col);
    }
    __syncwarp();
  }
  if (col < k) out[(size_t)row * k + col] = acc;
}
