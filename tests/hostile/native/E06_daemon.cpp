// Leaves a process behind that nobody waits for: forks twice, with a session of its own.
// Answers only where that succeeded; leaves with status 41 where it was refused.
#include <sys/wait.h>
#include <unistd.h>

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

static bool succeeded() {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        setsid();
        if (fork() == 0)
            for (;;) sleep(1000);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    return true;
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    if (!succeeded()) _exit(41);
    honest(M, N, indptr, indices, values, B, C);
}
