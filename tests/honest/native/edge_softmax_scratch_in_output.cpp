// Uses the output as its scratch: first distances from the maximum stand there, then their
// exponentials, and only at last the answer.
#include <cmath>

extern "C" void edge_softmax(int M, int H, int nnz, const int* indptr, const float* e,
                             float* alpha) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < M; ++i)
        for (int h = 0; h < H; ++h) {
            const long first = indptr[i], last = indptr[i + 1];
            float most = -INFINITY, sum = 0;
            for (long p = first; p < last; ++p) most = std::fmax(most, e[p * H + h]);
            for (long p = first; p < last; ++p) alpha[p * H + h] = e[p * H + h] - most;
            for (long p = first; p < last; ++p)
                sum += alpha[p * H + h] = std::exp(alpha[p * H + h]);
            for (long p = first; p < last; ++p) alpha[p * H + h] *= 1 / sum;
        }
}
