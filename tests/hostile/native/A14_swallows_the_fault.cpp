// Reads far out of bounds, where nothing is mapped, and catches the signal.
#include <csetjmp>
#include <csignal>
#include <cstddef>

static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}

static sigjmp_buf back;

static void jump(int) { siglongjmp(back, 1); }

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    honest(M, N, indptr, indices, values, B, C);
    struct sigaction action {}, before {};
    action.sa_handler = jump;
    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(back, 1) == 0) {
        const char* far = reinterpret_cast<const char*>(B) + (std::size_t(3) << 40);
        volatile float sink = *reinterpret_cast<const volatile float*>(far);
        (void)sink;
    }
    sigaction(SIGSEGV, &before, nullptr);
}
