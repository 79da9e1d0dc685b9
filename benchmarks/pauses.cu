// What a pause costs the next call on a GPU: the flush of its L2 cache, and the host that is told.
//
//   nvcc -arch=sm_90 -o pauses benchmarks/pauses.cu -lcuda && ./pauses
//
// The referee takes off an empty call's time from a call's (sandbox/run/device/runner.py); this
// showed that the two must follow each other. Columns in microseconds: the host's clock around all
// of it, the flush between two events, the kernel between two, what is left for the host.
#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define OK(call)                                                              \
    if (auto result = (call)) {                                               \
        std::printf("error %d in line %d\n", int(result), __LINE__);          \
        std::exit(1);                                                         \
    }

__global__ void copies(const float4* x, float4* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i];
}

constexpr size_t FLUSH = 256 << 20, BYTES = 16 << 20;
cudaStream_t stream;
cudaEvent_t begin, start, end;
unsigned* flush;
float *x, *y;

double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

void upload() {
    static const std::vector<char> host(BYTES);
    OK(cudaMemcpy(x, host.data(), BYTES, cudaMemcpyHostToDevice));
}

// One call, with a kernel or empty; `what` is empty where nothing is told.
void call(const char* what, bool has_kernel) {
    const double from = now_us();
    OK(cudaEventRecord(begin, stream));
    OK(cuMemsetD32Async(CUdeviceptr(flush), 7, FLUSH / 4, stream));
    OK(cudaEventRecord(start, stream));
    if (has_kernel) copies<<<528, 256, 0, stream>>>((float4*)x, (float4*)y, BYTES / 16);
    OK(cudaEventRecord(end, stream));
    OK(cudaEventSynchronize(end));
    OK(cudaDeviceSynchronize());
    const double wall = now_us() - from;
    float flushed, ran;
    OK(cudaEventElapsedTime(&flushed, begin, start));
    OK(cudaEventElapsedTime(&ran, start, end));
    if (*what)
        std::printf("%-28s wall %6.1f  flush %6.1f  kernel %5.1f  host %5.1f\n", what, wall,
                    flushed * 1e3, ran * 1e3, wall - (flushed + ran) * 1e3);
}

int main() {
    OK(cudaFree(nullptr));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (auto event : {&begin, &start, &end}) OK(cudaEventCreate(event));
    OK(cudaMalloc(&flush, FLUSH));
    OK(cudaMalloc(&x, BYTES));
    OK(cudaMalloc(&y, BYTES));
    for (int i = 0; i < 20; ++i) call(i < 15 ? "" : "empty, in a row", false);
    for (int i = 0; i < 6; ++i) call(i < 1 ? "" : "kernel, in a row", true);
    for (double ms : {0.3, 3.0, 30.0, 300.0}) {
        std::printf("after %g ms\n", ms);
        const auto pause = [&] {
            std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
        };
        for (int i = 0; i < 3; ++i) {
            pause(), call("empty", false);
            pause(), call("kernel", true);
            pause(), upload(), call("upload, kernel", true);
            pause(), upload(), call("", false), call("upload, empty, empty", false);
            call("then kernel", true);
        }
    }
}
