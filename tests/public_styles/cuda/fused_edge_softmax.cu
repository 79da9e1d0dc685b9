/*---
[[launch]]
kernel = "edge_softmax_warp"
grid = ["M"]
block = [32, "min(H, 8)"]
args = ["H", "indptr", "e", "alpha"]
---*/
// Style: dgSPARSE and dgNN, a warp for each row and head, three sweeps over the edges of the row.
#include <cuda.h>
#include <cuda_runtime.h>
#include <torch/types.h>
#include <unistd.h>
#include <stdio.h>

#define FULLMASK 0xffffffff
using namespace std;

__device__ __forceinline__ float warp_max(float v) {
  for (int stride = 16; stride > 0; stride >>= 1)
    v = max(v, __shfl_xor_sync(FULLMASK, v, stride, 32));
  return v;
}

extern "C" __global__ void edge_softmax_warp(int h, const int *row_ptr, const float *attn,
                                             float *out) {
  int rid = blockIdx.x;
  int lb = row_ptr[rid], hb = row_ptr[(rid + 1)];
  for (int hid = threadIdx.y; hid < h; hid += blockDim.y) {
    float weightMax = -INFINITY;
    for (int ptr = lb + threadIdx.x; ptr < hb; ptr += 32)
      weightMax = max(weightMax, attn[(size_t)ptr * h + hid]);
    weightMax = warp_max(weightMax);
    float expAll = 0.0f;
    for (int ptr = lb + threadIdx.x; ptr < hb; ptr += 32)
      expAll += exp(attn[(size_t)ptr * h + hid] - weightMax);
    for (int stride = 16; stride > 0; stride >>= 1)
      expAll += __shfl_xor_sync(FULLMASK, expAll, stride, 32);
    for (int ptr = lb + threadIdx.x; ptr < hb; ptr += 32)
      out[(size_t)ptr * h + hid] = exp(attn[(size_t)ptr * h + hid] - weightMax) / expAll;
  }
}
