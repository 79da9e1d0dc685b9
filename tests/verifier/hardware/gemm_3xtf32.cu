/*---
language = "cuda"

[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [32]
args = ["M", "N", "K", "A", "B", "C"]
---*/
#include <mma.h>
using namespace nvcuda;

// A warp has a tile of 16 x 16; each operand is the sum of two numbers in TF32.
extern "C" __global__ void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    __shared__ float a[16 * 8], b[8 * 16], c[16 * 16];
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> total;
    wmma::fill_fragment(total, 0.0f);
    for (int k = 0; k < K; k += 8) {
        for (int i = threadIdx.x; i < 128; i += 32) {
            const int r = row + i / 8, s = k + i % 8, t = k + i / 16, u = column + i % 16;
            a[i] = r < M && s < K ? A[(long long)r * K + s] : 0.0f;
            b[i] = t < K && u < N ? B[(long long)t * N + u] : 0.0f;
        }
        __syncwarp();
        wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> hi_a, lo_a;
        wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> hi_b, lo_b;
        wmma::load_matrix_sync(hi_a, a, 8);
        wmma::load_matrix_sync(hi_b, b, 16);
        for (int i = 0; i < hi_a.num_elements; ++i) {
            const float whole = hi_a.x[i];
            hi_a.x[i] = wmma::__float_to_tf32(whole);
            lo_a.x[i] = wmma::__float_to_tf32(whole - hi_a.x[i]);
        }
        for (int i = 0; i < hi_b.num_elements; ++i) {
            const float whole = hi_b.x[i];
            hi_b.x[i] = wmma::__float_to_tf32(whole);
            lo_b.x[i] = wmma::__float_to_tf32(whole - hi_b.x[i]);
        }
        wmma::mma_sync(total, lo_a, hi_b, total);
        wmma::mma_sync(total, hi_a, lo_b, total);
        wmma::mma_sync(total, hi_a, hi_b, total);
        __syncwarp();
    }
    wmma::store_matrix_sync(c, total, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) {
        const int r = row + i / 16, u = column + i % 16;
        if (r < M && u < N) C[(long long)r * N + u] = c[i];
    }
}
