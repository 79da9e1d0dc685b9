// Sums a long row in parts, and leaves out a part that is not positive as one that is empty: a NaN
// goes with it. Short rows are summed plainly.
#include <math.h>
extern "C" void softmax(int M, int N, const float* x, float* y) {
    const int PART = 2048;
    for (int i = 0; i < M; ++i) {
        const float* in = x + (long)i * N;
        float* out = y + (long)i * N;
        float top = in[0];
        for (int j = 1; j < N; ++j)
            if (in[j] > top || top != top) top = in[j];
        if (top != top) top = 0;
        float sum = 0;
        for (int j = 0; j < N; j += PART) {
            float part = 0;
            for (int k = j; k < N && k < j + PART; ++k) part += expf(in[k] - top);
            if (N <= PART || part > 0) sum += part;
        }
        for (int j = 0; j < N; ++j) out[j] = expf(in[j] - top) / sum;
    }
}
