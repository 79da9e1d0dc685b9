/*---
[[launch]]
kernel = "softmax_backward"
grid = ["cdiv(M, 4)"]
block = [128]
args = ["y", "dy", "dx", "M", "N"]
---*/
// Style: hand-written training code: macros in do-while, read-only loads, a warp for each row.
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#define WARP_SIZE 32
#define cudaCheck(err) (cuda_check(err, __FILE__, __LINE__))
#define WARP_REDUCE_SUM(value)                                   \
  do {                                                           \
    for (int offset = WARP_SIZE / 2; offset > 0; offset /= 2) {  \
      (value) += __shfl_xor_sync(0xFFFFFFFF, (value), offset);   \
    }                                                            \
  } while (0)

typedef float floatX;

extern "C" __global__ void __launch_bounds__(128, 8)
    softmax_backward(const floatX* __restrict__ y, const floatX* __restrict__ dy,
                     floatX* __restrict__ dx, int rows, int n) {
  const uint warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
  const int row = blockIdx.x * (blockDim.x / WARP_SIZE) + warp;
  if (row >= rows) return;
  const ptrdiff_t base = static_cast<ptrdiff_t>(row) * n;
  float dot = 0.0f;
  for (int i = lane; i < n; i += WARP_SIZE) dot += __ldg(y + base + i) * __ldg(dy + base + i);
  WARP_REDUCE_SUM(dot);
  for (int i = lane; i < n; i += WARP_SIZE)
    __stcs(dx + base + i, __ldcs(y + base + i) * (__ldcs(dy + base + i) - dot));
}
