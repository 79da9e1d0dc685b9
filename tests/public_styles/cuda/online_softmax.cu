/*---
[[launch]]
kernel = "online_softmax<64>"
grid = ["M"]
block = [64]
args = ["x", "y", "N"]
---*/
// Style: Milakov and Gimelshein's online normaliser: pairs of maximum and sum, fast exponentials.
#include <cuda_runtime.h>
#include <math_constants.h>

struct __align__(8) MD {
  float m;
  float d;
};

__device__ __forceinline__ MD reduce_md_op(MD a, MD b) {
  bool a_bigger = (a.m > b.m);
  MD bigger_m = a_bigger ? a : b;
  MD smaller_m = a_bigger ? b : a;
  MD res;
  res.d = bigger_m.d + smaller_m.d * __expf(smaller_m.m - bigger_m.m);
  res.m = bigger_m.m;
  return res;
}

template <int THREADBLOCK_SIZE>
__launch_bounds__(THREADBLOCK_SIZE) __global__
    void online_softmax(const float* __restrict x, float* __restrict y, int V) {
  int thread_id = threadIdx.x;
  int vector_id = blockIdx.x;
  x += (size_t)vector_id * V;
  y += (size_t)vector_id * V;

  __shared__ MD partial[THREADBLOCK_SIZE / 32];
  __shared__ MD md_total;

  MD md_partial;
  md_partial.m = -FLT_MAX;
  md_partial.d = 0.0F;
  for (int elem_id = thread_id; elem_id < V; elem_id += THREADBLOCK_SIZE) {
    MD new_elem;
    new_elem.m = x[elem_id];
    new_elem.d = 1.0F;
    md_partial = reduce_md_op(md_partial, new_elem);
  }
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    MD other = {__shfl_xor_sync(0xffffffff, md_partial.m, mask),
                __shfl_xor_sync(0xffffffff, md_partial.d, mask)};
    md_partial = reduce_md_op(md_partial, other);
  }
  if (thread_id % warpSize == 0) partial[thread_id / warpSize] = md_partial;
  __syncthreads();
  if (thread_id == 0) {
    MD total = partial[0];
    for (int w = 1; w < THREADBLOCK_SIZE / 32; ++w) total = reduce_md_op(total, partial[w]);
    md_total = total;
  }
  __syncthreads();

  float d_total_inverse = __fdividef(1.0F, md_total.d);
  for (int elem_id = thread_id; elem_id < V; elem_id += THREADBLOCK_SIZE)
    y[elem_id] = __expf(x[elem_id] - md_total.m) * d_total_inverse;
}
