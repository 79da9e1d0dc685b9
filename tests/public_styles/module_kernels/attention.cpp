#include <math.h>
#include <vector>

extern "C" void attention(
    int M, int N, int L, int P, int R, const float* Q, const float* K, const float* V, float* y1) {
    std::vector<double> scores(R);
    for (long head = 0; head < (long)M * N; ++head)
        for (long i = 0; i < L; ++i) {
            double most = -INFINITY, sum = 0;
            for (long j = 0; j < R; ++j) {
                double dot = 0;
                for (long d = 0; d < P; ++d)
                    dot += (double)Q[(head * L + i) * P + d] * K[(head * R + j) * P + d];
                scores[j] = dot / sqrt((double)P);
                most = fmax(most, scores[j]);
            }
            for (long j = 0; j < R; ++j) sum += scores[j] = exp(scores[j] - most);
            for (long d = 0; d < P; ++d) {
                double mixed = 0;
                for (long j = 0; j < R; ++j) mixed += scores[j] * V[(head * R + j) * P + d];
                y1[(head * L + i) * P + d] = (float)(mixed / sum);
            }
        }
}
