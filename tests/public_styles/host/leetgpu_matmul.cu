#include <cuda_runtime.h>

// A is M x N, B is N x K, C is M x K

#define BM 64
#define BN 64
#define BK 16
#define TM 4
#define TN 4

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float sA[BK][BM + 4];
    __shared__ float sB[BK][BN];

    int tid = threadIdx.y * blockDim.x + threadIdx.x;   // 0 .. 255
    int row0 = blockIdx.y * BM;
    int col0 = blockIdx.x * BN;

    float acc[TM][TN] = {};
    float ra[TM], rb[TN];

    for (int k0 = 0; k0 < N; k0 += BK) {
        for (int i = tid; i < BM * BK; i += blockDim.x * blockDim.y) {
            int r = i / BK, c = i % BK;
            sA[c][r] = (row0 + r < M && k0 + c < N) ? A[(row0 + r) * N + (k0 + c)] : 0.0f;
        }
        for (int i = tid; i < BK * BN; i += blockDim.x * blockDim.y) {
            int r = i / BN, c = i % BN;
            sB[r][c] = (k0 + r < N && col0 + c < K) ? B[(k0 + r) * K + (col0 + c)] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < BK; k++) {
            for (int i = 0; i < TM; i++) ra[i] = sA[k][threadIdx.y * TM + i];
            for (int j = 0; j < TN; j++) rb[j] = sB[k][threadIdx.x * TN + j];
            for (int i = 0; i < TM; i++)
                for (int j = 0; j < TN; j++)
                    acc[i][j] += ra[i] * rb[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; i++) {
        int row = row0 + threadIdx.y * TM + i;
        for (int j = 0; j < TN; j++) {
            int col = col0 + threadIdx.x * TN + j;
            if (row < M && col < K) C[row * K + col] = acc[i][j];
        }
    }
}

// A, B, C are device pointers (i.e. pointers to memory on the GPU)
extern "C" void solve(const float* A, const float* B, float* C, int M, int N, int K) {
    dim3 threadsPerBlock(BN / TN, BM / TM);
    dim3 blocksPerGrid((K + BN - 1) / BN,
                       (M + BM - 1) / BM);

    matrix_multiplication_kernel<<<blocksPerGrid, threadsPerBlock>>>(A, B, C, M, N, K);
    cudaDeviceSynchronize();
}
