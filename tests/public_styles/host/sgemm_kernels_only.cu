// SGEMM building blocks, row-major:  C[M,N] = A[M,K] * B[K,N]
// Device code only; link it into your own launcher.
//
// launch: <<<dim3((N+31)/32, (M+31)/32), dim3(32,8)>>>

#define TILE 32
#define BLOCK_ROWS 8

// Straight from global memory, four rows to a thread.
extern "C" __global__ void __launch_bounds__(256)
sgemm_direct(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
             int M, int N, int K)
{
    const int col  = blockIdx.x * TILE + threadIdx.x;
    const int row0 = blockIdx.y * TILE + threadIdx.y;
    if (col >= N) return;

    #pragma unroll
    for (int r = 0; r < TILE; r += BLOCK_ROWS) {
        const int row = row0 + r;
        if (row < M) {
            float sum = 0.0f;
            for (int k = 0; k < K; ++k)
                sum = fmaf(A[(size_t)row * K + k], B[(size_t)k * N + col], sum);
            C[(size_t)row * N + col] = sum;
        }
    }
}

// 32 x 32 tiles through shared memory, four rows to a thread.
extern "C" __global__ void __launch_bounds__(TILE * BLOCK_ROWS, 4)
sgemm_smem(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
           int M, int N, int K)
{
    __shared__ float tileA[TILE][TILE + 1];
    __shared__ float tileB[TILE][TILE + 1];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int col  = blockIdx.x * TILE + tx;
    const int row0 = blockIdx.y * TILE + ty;

    float sum[TILE / BLOCK_ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (int k0 = 0; k0 < K; k0 += TILE) {
        #pragma unroll
        for (int r = 0; r < TILE; r += BLOCK_ROWS) {
            const int row = row0 + r;
            const int ka = k0 + tx;
            const int kb = k0 + ty + r;
            tileA[ty + r][tx] = (row < M && ka < K) ? A[(size_t)row * K + ka] : 0.0f;
            tileB[ty + r][tx] = (kb < K && col < N) ? B[(size_t)kb * N + col] : 0.0f;
        }
        __syncthreads();

        #pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float b = tileB[k][tx];
            #pragma unroll
            for (int i = 0; i < TILE / BLOCK_ROWS; ++i)
                sum[i] = fmaf(tileA[ty + i * BLOCK_ROWS][k], b, sum[i]);
        }
        __syncthreads();
    }

    if (col < N) {
        #pragma unroll
        for (int i = 0; i < TILE / BLOCK_ROWS; ++i) {
            const int row = row0 + i * BLOCK_ROWS;
            if (row < M) C[(size_t)row * N + col] = sum[i];
        }
    }
}
