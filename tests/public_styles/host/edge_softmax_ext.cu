// Edge softmax for graph attention (CSR, multi-head).
//   python: alpha = edge_softmax_cuda.forward(row_ptr, logits)
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cfloat>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) \
  do {                 \
    CHECK_CUDA(x);     \
    CHECK_CONTIGUOUS(x); \
  } while (0)

#define THREADS 128

inline int divup(int64_t a, int64_t b) { return static_cast<int>((a + b - 1) / b); }

// one thread per (row, head): heads are innermost so that neighbours coalesce
__global__ void edge_softmax_thread_kernel(
    const int* __restrict__ row_ptr,
    const float* __restrict__ logits,
    float* __restrict__ alpha,
    const int n_rows,
    const int n_heads) {
  const int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n_rows * n_heads) return;
  const int r = tid / n_heads;
  const int h = tid % n_heads;
  const int beg = row_ptr[r], end = row_ptr[r + 1];
  if (beg == end) return;

  float mx = -FLT_MAX;
  for (int p = beg; p < end; ++p) mx = fmaxf(mx, logits[(int64_t)p * n_heads + h]);
  float sum = 0.f;
  for (int p = beg; p < end; ++p) sum += expf(logits[(int64_t)p * n_heads + h] - mx);
  for (int p = beg; p < end; ++p) {
    const int64_t q = (int64_t)p * n_heads + h;
    alpha[q] = expf(logits[q] - mx) / sum;
  }
}

// one warp per (row, head)
__global__ void edge_softmax_warp_kernel(
    const int* __restrict__ row_ptr,
    const float* __restrict__ logits,
    float* __restrict__ alpha,
    const int n_rows,
    const int n_heads) {
  const int64_t warp = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int lane = threadIdx.x & 31;
  if (warp >= (int64_t)n_rows * n_heads) return;
  const int r = warp / n_heads;
  const int h = warp % n_heads;
  const int beg = row_ptr[r], end = row_ptr[r + 1];

  float mx = -FLT_MAX;
  for (int p = beg + lane; p < end; p += 32) mx = fmaxf(mx, logits[(int64_t)p * n_heads + h]);
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) mx = fmaxf(mx, __shfl_xor_sync(0xffffffff, mx, o));

  float sum = 0.f;
  for (int p = beg + lane; p < end; p += 32) sum += expf(logits[(int64_t)p * n_heads + h] - mx);
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);

  for (int p = beg + lane; p < end; p += 32) {
    const int64_t q = (int64_t)p * n_heads + h;
    alpha[q] = expf(logits[q] - mx) / sum;
  }
}

torch::Tensor edge_softmax_forward(torch::Tensor row_ptr, torch::Tensor logits) {
  CHECK_INPUT(row_ptr);
  CHECK_INPUT(logits);
  TORCH_CHECK(row_ptr.dtype() == torch::kInt32, "row_ptr must be int32");
  TORCH_CHECK(logits.dim() == 2, "logits must be [nnz, heads]");

  const int64_t n_rows = row_ptr.size(0) - 1;
  const int64_t nnz = logits.size(0);
  const int64_t n_heads = logits.size(1);
  auto alpha = torch::empty({nnz, n_heads}, logits.options());
  if (nnz == 0 || n_rows <= 0) return alpha;

  cudaStream_t stream = at::cuda::getCurrentCUDAStream();

  // average degree decides
  if (nnz / n_rows < 8) {
    edge_softmax_thread_kernel<<<divup(n_rows * n_heads, THREADS), THREADS, 0, stream>>>(
        row_ptr.data_ptr<int>(), logits.data_ptr<float>(), alpha.data_ptr<float>(),
        n_rows, n_heads);
  } else {
    edge_softmax_warp_kernel<<<divup(n_rows * n_heads * 32, THREADS), THREADS, 0, stream>>>(
        row_ptr.data_ptr<int>(), logits.data_ptr<float>(), alpha.data_ptr<float>(),
        n_rows, n_heads);
  }
  AT_CUDA_CHECK(cudaGetLastError());
  return alpha;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &edge_softmax_forward, "Edge softmax forward (CUDA)",
        py::arg("row_ptr"), py::arg("logits"));
}
