#include <math.h>

extern "C" void kl_div_loss(
    int M, int N, const float* predictions, const float* targets, float* y1) {
    double sum = 0;
    for (long i = 0; i < (long)M * N; ++i) {
        const double t = targets[i];
        if (t > 0) sum += t * log(t);
        sum -= t * log((double)predictions[i]);
    }
    *y1 = (float)(sum / M);
}
