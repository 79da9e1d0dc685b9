// Softmax backward: dx = y * (dy - sum(y * dy))
//
// nvcc -O3 -arch=sm_80 -o softmax_backward_bench softmax_backward_bench.cu
// ./softmax_backward_bench [M] [N]

#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                          \
    do {                                                                          \
        cudaError_t err__ = (call);                                               \
        if (err__ != cudaSuccess) {                                               \
            fprintf(stderr, "%s:%d: CUDA error: %s\n", __FILE__, __LINE__,        \
                    cudaGetErrorString(err__));                                   \
            exit(EXIT_FAILURE);                                                   \
        }                                                                         \
    } while (0)

static const int BLOCK_DIM = 256;

__device__ float warp_sum(float v) {
    for (int s = 16; s > 0; s >>= 1) v += __shfl_xor_sync(0xffffffff, v, s);
    return v;
}

__global__ void softmax_bwd(float *d_dx, const float *d_y, const float *d_dy, int M, int N) {
    __shared__ float warp_sums[32];
    const int row = blockIdx.x;
    const int warps = blockDim.x / 32;
    const float *y = d_y + (size_t)row * N;
    const float *dy = d_dy + (size_t)row * N;
    float *dx = d_dx + (size_t)row * N;

    float dot = 0.0f;
    for (int j = threadIdx.x; j < N; j += blockDim.x) dot += y[j] * dy[j];
    dot = warp_sum(dot);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = dot;
    __syncthreads();

    // every warp adds the partial sums up for itself
    dot = threadIdx.x % 32 < warps ? warp_sums[threadIdx.x % 32] : 0.0f;
    dot = warp_sum(dot);

    for (int j = threadIdx.x; j < N; j += blockDim.x) dx[j] = y[j] * (dy[j] - dot);
}

static void softmax_bwd_cpu(float *dx, const float *y, const float *dy, int M, int N) {
    for (int i = 0; i < M; i++) {
        double dot = 0.0;
        for (int j = 0; j < N; j++) dot += (double)y[(size_t)i * N + j] * dy[(size_t)i * N + j];
        for (int j = 0; j < N; j++) {
            size_t p = (size_t)i * N + j;
            dx[p] = (float)(y[p] * (dy[p] - dot));
        }
    }
}

static float frand() { return (float)rand() / RAND_MAX * 2.0f - 1.0f; }

int main(int argc, char **argv) {
    int M = argc > 1 ? atoi(argv[1]) : 4096;
    int N = argc > 2 ? atoi(argv[2]) : 1024;
    const int warmup = 5, iters = 100;
    const size_t count = (size_t)M * N;
    const size_t bytes = count * sizeof(float);
    printf("softmax backward, M = %d, N = %d\n", M, N);

    std::vector<float> h_y(count), h_dy(count), h_dx(count), h_ref(count);
    srand(1234);
    for (int i = 0; i < M; i++) {
        float sum = 0.0f;
        for (int j = 0; j < N; j++) sum += h_y[(size_t)i * N + j] = expf(frand());
        for (int j = 0; j < N; j++) h_y[(size_t)i * N + j] /= sum;
    }
    for (size_t p = 0; p < count; p++) h_dy[p] = frand();

    float *d_y, *d_dy, *d_dx;
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    CUDA_CHECK(cudaMalloc(&d_dy, bytes));
    CUDA_CHECK(cudaMalloc((void **)&d_dx, bytes));
    CUDA_CHECK(cudaMemcpy(d_y, h_y.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_dy, h_dy.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(d_dx, 0, bytes));

    // warm up
    for (int i = 0; i < warmup; i++) {
        softmax_bwd<<<M, BLOCK_DIM>>>(d_dx, d_y, d_dy, M, N);
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    for (int i = 0; i < iters; i++) {
        softmax_bwd<<<M, BLOCK_DIM>>>(d_dx, d_y, d_dy, M, N);
    }
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    ms /= iters;
    printf("time %.4f ms, bandwidth %.1f GB/s\n", ms, 3.0 * bytes / (ms * 1e6));

    CUDA_CHECK(cudaMemcpy(h_dx.data(), d_dx, bytes, cudaMemcpyDeviceToHost));
    softmax_bwd_cpu(h_ref.data(), h_y.data(), h_dy.data(), M, N);
    double max_err = 0.0;
    for (size_t p = 0; p < count; p++) max_err = fmax(max_err, fabs((double)h_dx[p] - h_ref[p]));
    bool ok = max_err < 1e-5;
    printf("max abs error %g: %s\n", max_err, ok ? "PASS" : "FAIL");

    CUDA_CHECK(cudaEventDestroy(start));
    CUDA_CHECK(cudaEventDestroy(stop));
    CUDA_CHECK(cudaFree(d_y));
    CUDA_CHECK(cudaFree(d_dy));
    CUDA_CHECK(cudaFree(d_dx));
    return ok ? 0 : 1;
}
