// Sends control sequences to the terminal that will show its log.
#include <cstdlib>
#include <unistd.h>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    static const char told[] =
        "\x1b[2J\x1b]0;owned\x07\rPASS\x08\x9b" "31m\xe2\x80\xae\0 VERIFIED\n";
    if (write(2, told, sizeof told - 1) < 0) _exit(1);
    std::abort();
}
