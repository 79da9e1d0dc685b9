// A CUDA driver for tests: memory is malloc'ed, kernels are the host functions below.
//
// A "cubin" begins with FAKE, or is one that says what it is for (fake_gpu.hpp); its kernels are
// found by name. Work is done by its stream, later than it is enqueued, and what a device tells late
// (a wrong address, a hang) is told late here, too; then the context is lost. FAKE_CUDA in the
// environment names, with commas between them, what is wrong and what is otherwise than usual:
// no_device, no_context, bad_memory, hang, small, crowded, slow_copies, driver=12040, sm=80, name=…,
// and in microseconds jitter=40 (the host wakes up so much later, in one wait of three) and launch_us=3.
// It starts as a real one does, which gives error 304 where a jail refuses it any of this: a memory
// file of some size, a local socket that it listens on, and names for its threads.
#include <cmath>
#include <cstddef>
#include <fcntl.h>
#include <map>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fake_gpu.hpp"

namespace {

using fake::is_broken, fake::sticky, fake::Stream, fake::Work;
using Address = uint64_t;
using Handle = void*;
struct Attribute { int id; char pad[4]; unsigned cluster[16]; };
struct Config {
    unsigned grid[3], block[3], shared;
    Handle stream;
    const Attribute* attributes;
    unsigned attribute_count;
};
struct Call { Config config; std::vector<uint64_t> values; };
struct Kernel {
    const char* name;
    size_t parameters;
    std::function<void(const Call&)> body;
    int shared_limit = 48 << 10;
    bool may_be_wide = false;
};
struct Event { Stream* stream = nullptr; uint64_t ticket = 0; double us = 0; };
struct Graph { std::vector<Work> nodes; bool is_broken = false; };

constexpr double SET_BYTES_US = 3e6, COPIED_BYTES_US = 25e3, KERNEL_US = 2, LATE_US = 2e4;

size_t total_bytes = size_t(1) << 30, others = size_t(64) << 20;  // what other processes hold
size_t held = 0;
std::map<Address, size_t> blocks;
bool is_current = false;
Stream* legacy = nullptr;
std::vector<Stream*> streams;
Graph* captured = nullptr;
std::atomic<bool> plays_graph = false;
// Counted since the last launch.
std::atomic<size_t> flushed_bytes = 0, resets = 0;
std::atomic<size_t> copied_bytes = 0;  // on the device, since the last flush
std::atomic<size_t> uploads = 0, persisting = 99;

template <typename T> T* at(const Call& call, size_t i) { return reinterpret_cast<T*>(call.values[i]); }
float number(const Call& call, size_t i) {
    float value;
    std::memcpy(&value, &call.values[i], sizeof value);
    return value;
}

[[noreturn]] void hang() { for (;;) pause(); }

// M, N, x, bias, y
void bias_gelu(const Call& c, double factor) {
    const int rows = int(c.values[0]), columns = int(c.values[1]);
    for (int i = 0; i < rows * columns; ++i) {
        const double s = at<float>(c, 2)[i] + at<float>(c, 3)[i % columns];
        const double gate = std::tanh(0.7978845608028654 * (s + 0.044715 * s * s * s));
        at<float>(c, 4)[i] = float(factor * s * (1 + gate));
    }
}

std::vector<Kernel> kernels = {
    {"gelu_right", 5, [](const Call& c) { bias_gelu(c, 0.5); }},
    {"gelu_wrong", 5, [](const Call& c) { bias_gelu(c, 0.51); }},
    {"gelu_wrong_later", 5, [](const Call& c) {
        static int calls;
        bias_gelu(c, ++calls > 20 ? 0.51 : 0.5);
    }},
    {"gelu_at_wrong_address", 5, [](const Call&) { sticky = 700; }},
    {"gelu_that_hangs", 5, [](const Call&) { hang(); }},
    // Of tests/gpu, and every instance of our recipes' template of this name.
    {"k", 5, [](const Call& c) { bias_gelu(c, 0.5); }},
    {"_Z9bias_gelu*", 5, [](const Call& c) { bias_gelu(c, 0.5); }},
    // n, a, x, y: y = a x
    {"scale", 4, [](const Call& c) {
        for (int i = 0; i < int(c.values[0]); ++i) at<float>(c, 3)[i] = number(c, 1) * at<float>(c, 2)[i];
    }},
    {"_Z5scaleIfLi4EEvv", 2, [](const Call& c) { at<float>(c, 1)[0] = 4 * at<float>(c, 0)[0]; }},
    {"copy_first", 2, [](const Call& c) { at<float>(c, 1)[0] = at<float>(c, 0)[0]; }},
    {"adds", 2, [](const Call& c) { at<float>(c, 1)[0] += at<float>(c, 0)[0]; }},
    {"nothing", 2, [](const Call&) {}},
    {"writes_before", 2, [](const Call& c) { at<char>(c, 1)[-1] ^= 1; }},
    {"writes_input", 2, [](const Call& c) { at<float>(c, 0)[1] += 1; }},
    {"writes_before_input", 2, [](const Call& c) { at<char>(c, 0)[-2] ^= 1; }},
    {"wrong_address", 2, [](const Call&) { sticky = 700; }},
    {"y_is_fresh", 2, [](const Call& c) { if (*at<unsigned>(c, 1) != 0x11111111) sticky = 719; }},
    {"breaks_the_device", 2, [](const Call&) { sticky = 214; }},
    {"hangs", 2, [](const Call&) { hang(); }},
    {"takes_a_while", 2, [](const Call&) {}},
    {"tells_address", 2, [](const Call& c) { std::memcpy(at<char>(c, 1), &c.values[0], 8); }},
    // Into y: what the runner did, and how it launched.
    {"tells", 2, [](const Call& c) {
        auto* y = at<float>(c, 1);
        const auto& config = c.config;
        const float told[] = {
            float(flushed_bytes >> 20), float(resets), float(persisting), float(config.grid[0]),
            float(config.block[1]), float(config.shared),
            float(config.attribute_count ? config.attributes[0].cluster[0] : 0),
            float(plays_graph), float(uploads), float(held >> 20), float(copied_bytes),
        };
        std::memcpy(y, told, sizeof told);
    }},
};

// A name with a star at its end stands for all that begin so.
bool is_called(const Kernel& kernel, const char* name) {
    const std::string known = kernel.name;
    if (known.back() != '*') return known == name;
    return !std::strncmp(name, known.data(), known.size() - 1);
}

// Of what no kernel may do while a graph is made: the capture is lost by it.
bool breaks_capture() { return captured && (captured->is_broken = true); }

int enqueue(Handle stream, Work work) {
    if (captured) return captured->nodes.push_back(std::move(work)), 0;
    return static_cast<Stream*>(stream)->push(std::move(work)), 0;
}

double cost_us(const Kernel& kernel, const Call& call) {
    if (!std::strcmp(kernel.name, "takes_a_while")) return 1e3 * number(call, 1);
    return KERNEL_US;
}

int launch(const Config& config, Kernel& kernel, std::vector<uint64_t> values) {
    const auto threads = config.block[0] * config.block[1] * config.block[2];
    unsigned blocks_in_cluster = 1;
    if (config.attribute_count)
        for (int i = 0; i < 3; ++i) blocks_in_cluster *= config.attributes[0].cluster[i];
    if (threads > 1024) return 1;
    if (int(config.shared) > kernel.shared_limit) return 1;
    if (blocks_in_cluster > (kernel.may_be_wide ? 16 : 8)) return 912;
    if (threads == 999) return 701;
    fake::wait_until(fake::now_us() + fake::number("launch_us", 3));
    Call call{config, std::move(values)};
    static Attribute attribute;
    if (config.attribute_count) attribute = *config.attributes;
    call.config.attributes = config.attribute_count ? &attribute : nullptr;
    const double cost = cost_us(kernel, call);
    return enqueue(config.stream, {cost, [call = std::move(call), &kernel](double) {
        kernel.body(call);
        flushed_bytes = resets = 0;
    }});
}

// What a device takes longer for after it has had nothing to set for some milliseconds.
double late() {
    static double last = 0;
    const double rested = fake::now_us() - std::exchange(last, fake::now_us());
    return rested > 5000 ? fake::number("rested", 0) : 0;
}

int set(Address to, const void* pattern, size_t size, size_t count, Handle stream) {
    const bool is_flush = size * count > 64 << 20;  // writing it would be slow here
    auto fill = [=, value = std::string(static_cast<const char*>(pattern), size)](double) {
        if (is_flush) flushed_bytes += size * count, copied_bytes = 0;
        else for (size_t i = 0; i < count; ++i)
            std::memcpy(reinterpret_cast<char*>(to) + i * size, value.data(), size);
    };
    return enqueue(stream, {1 + double(size * count) / SET_BYTES_US + (is_flush ? late() : 0), fill});
}

// Over the bus, in the legacy stream.
void copy(void* to, const void* from, size_t bytes) {
    const double late = is_broken("slow_copies") ? LATE_US : 0;
    const auto effect = [=, staged = std::string(static_cast<const char*>(from), bytes)](double) {
        std::memcpy(to, staged.data(), bytes);
    };
    legacy->push({2 + late + double(bytes) / COPIED_BYTES_US, effect});
}

int woken() {
    static std::minstd_rand dice(7);
    if (const double late = fake::number("jitter", 0); late && dice() % 3 == 0)
        fake::wait_until(fake::now_us() + late);
    return sticky;
}

int all_done() {
    legacy->drain();
    for (auto* stream : streams) stream->drain();
    return woken();
}

// As it starts, and whenever it needs one more thread.
bool names_a_thread() {
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/task/%d/comm", int(gettid()));
    const int thread = open(name, O_WRONLY);
    const bool can = write(thread, "cuda-fake", 9) == 9;
    close(thread);
    return can;
}

bool starts() {
    sockaddr_un place{AF_UNIX, {}};
    const int length = std::snprintf(place.sun_path + 1, sizeof place.sun_path - 1,
                                     "cuda-uvmfd-test-%d-%p", int(getpid()),
                                     static_cast<void*>(&held));
    const auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + size_t(length));
    const int met = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(met, reinterpret_cast<sockaddr*>(&place), size) != 0 || listen(met, 4) != 0)
        return false;
    const int maps = open("/proc/self/maps", O_RDONLY), memory = memfd_create("cuda", MFD_CLOEXEC);
    const bool can = maps >= 0 && memory >= 0 && ftruncate(memory, 96 << 20) == 0;
    for (const int fd : {maps, memory}) close(fd);
    return can && names_a_thread();
}

}  // namespace

// What every call gives once the context is lost.
#define KW_ALIVE do { if (const int lost = sticky) return lost; } while (false)
// The same, of calls that are not allowed while a graph is made.
#define KW_FREE do { KW_ALIVE; if (breaks_capture()) return 900; } while (false)

extern "C" {
int cuInit(unsigned) {
    if (!starts()) return 304;
    if (is_broken("hang")) hang();
    if (is_broken("small")) total_bytes = 4 << 20, others = 0;
    if (is_broken("crowded")) others = total_bytes - (4 << 20);
    return is_broken("no_device") ? 100 : 0;
}
int cuDriverGetVersion(int* version) { return *version = int(fake::number("driver", 13000)), 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal ? 101 : 0; }
int cuDeviceGetName(char* name, int size, int) {
    const auto told = fake::asked("name");
    return std::strncpy(name, told.empty() ? "Fake GPU" : told.c_str(), size_t(size)), 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {
    const int sm = int(fake::number("sm", 90));
    const std::map<int, int> known = {
        {16, 4}, {17, 0}, {38, 1 << 20}, {75, sm / 10}, {76, sm % 10}, {88, 0},
    };
    return *value = known.at(which), 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = total_bytes, 0; }
int cuDevicePrimaryCtxRetain(Handle* context, int) {
    legacy = legacy ? legacy : new Stream;
    return *context = &sticky, is_broken("no_context") ? 46 : 0;
}
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return 0; }
int cuCtxSetCurrent(Handle context) { return is_current = context != nullptr, 0; }
int cuCtxSynchronize() { KW_FREE; return all_done(); }
int cuCtxSetLimit(int which, size_t value) { return which == 6 ? persisting = value : 0, 0; }
int cuCtxResetPersistingL2Cache() { return ++resets, 0; }
int cuModuleLoadData(Handle* module, const void* image) {
    KW_FREE;
    if (!names_a_thread()) return 304;
    *module = &kernels;
    int cuda = 0, major = 0, minor = 0;
    cuDriverGetVersion(&cuda);
    cuDeviceGetAttribute(&major, 75, 0);
    cuDeviceGetAttribute(&minor, 76, 0);
    const auto told = fake::read_image(static_cast<const char*>(image));
    return fake::refusal(told, {cuda / 1000, cuda % 1000 / 10}, {major, minor});
}
int cuModuleGetFunction(Handle* function, Handle, const char* name) {
    for (auto& kernel : kernels)
        if (is_called(kernel, name)) return *function = &kernel, 0;
    return 500;
}
int cuFuncSetAttribute(Handle function, int which, int value) {
    auto& kernel = *static_cast<Kernel*>(function);
    if (which == 14) return kernel.may_be_wide = value, 0;
    if (which != 8 || value > 227 << 10) return 1;
    return kernel.shared_limit = value, 0;
}
int cuLaunchKernelEx(const Config* config, Handle function, void** arguments, void**) {
    KW_ALIVE;
    auto& kernel = *static_cast<Kernel*>(function);
    std::vector<uint64_t> values(kernel.parameters);
    for (size_t i = 0; i < kernel.parameters; ++i) std::memcpy(&values[i], arguments[i], 8);
    return launch(*config, kernel, values);
}
int cuMemAlloc_v2(Address* at, size_t bytes) {
    KW_FREE;
    if (!is_current) return 201;
    if (held + bytes + others > total_bytes) return 2;
    void* block = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
    std::memset(block, 0x11, bytes < 64 << 20 ? bytes : 0);
    *at = reinterpret_cast<Address>(block);
    blocks[*at] = bytes;
    held += bytes;
    return 0;
}
int cuMemFree_v2(Address at) {
    KW_FREE;
    if (!blocks.count(at)) return 1;
    if (const int lost = all_done()) return lost;
    held -= blocks[at];
    blocks.erase(at);
    std::free(reinterpret_cast<void*>(at));
    return 0;
}
int cuMemGetInfo_v2(size_t* unused, size_t* total) {
    return *unused = total_bytes - others - held, *total = total_bytes, 0;
}
// From pageable memory: it returns as soon as the bytes are staged.
int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
    KW_FREE;
    ++uploads;
    return copy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
    KW_FREE;
    legacy->push({2 + double(bytes) / COPIED_BYTES_US, [=](double) {
        std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    }});
    legacy->drain();
    if (is_broken("bad_memory")) static_cast<char*>(to)[bytes / 2] ^= 1;
    return sticky;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Handle stream) {
    KW_ALIVE;
    return enqueue(stream, {2 + double(bytes) / SET_BYTES_US, [=](double) {
        std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
        copied_bytes += bytes;
    }});
}
int cuMemsetD32Async(Address to, unsigned value, size_t count, Handle stream) {
    KW_ALIVE;
    return set(to, &value, 4, count, stream);
}
int cuMemsetD8Async(Address to, unsigned char value, size_t count, Handle stream) {
    KW_ALIVE;
    return set(to, &value, 1, count, stream);
}
// Streams that are ordered with the legacy one are not made here.
int cuStreamCreate(Handle* stream, unsigned flags) {
    KW_ALIVE;
    if (flags != 1) return 801;
    return *stream = streams.emplace_back(new Stream), 0;
}
int cuStreamSynchronize(Handle stream) {
    KW_FREE;
    static_cast<Stream*>(stream)->drain();
    return woken();
}
int cuStreamBeginCapture_v2(Handle, int) { KW_FREE; return captured = new Graph, 0; }
int cuStreamEndCapture(Handle, Handle* graph) {
    KW_ALIVE;
    auto* made = std::exchange(captured, nullptr);
    return *graph = made, made->is_broken ? 901 : 0;
}
int cuGraphInstantiateWithFlags(Handle* ready, Handle graph, unsigned long long) {
    return *ready = new Graph(*static_cast<Graph*>(graph)), 0;
}
int cuGraphUpload(Handle, Handle) { return 0; }
int cuGraphLaunch(Handle ready, Handle stream) {
    KW_ALIVE;
    const auto nodes = static_cast<Graph*>(ready)->nodes;
    double cost = 0;
    for (const auto& node : nodes) cost += node.cost_us;
    return enqueue(stream, {cost, [nodes](double us) {
        plays_graph = true;
        for (const auto& node : nodes) node.effect(us);
        plays_graph = false;
    }});
}
int cuGraphExecDestroy(Handle ready) { return delete static_cast<Graph*>(ready), 0; }
int cuGraphDestroy(Handle graph) { return delete static_cast<Graph*>(graph), 0; }
int cuEventCreate(Handle* event, unsigned) { return *event = new Event, 0; }
int cuEventRecord(Handle handle, Handle stream) {
    KW_FREE;
    auto* event = static_cast<Event*>(handle);
    event->us = 0;
    event->stream = static_cast<Stream*>(stream);
    event->ticket = event->stream->push({0, [event](double us) { event->us = us; }});
    return 0;
}
int cuEventSynchronize(Handle handle) {
    KW_FREE;
    auto* event = static_cast<Event*>(handle);
    if (event->stream) event->stream->wait_for(event->ticket);
    return woken();
}
int cuEventElapsedTime(float* ms, Handle from, Handle to) {
    KW_ALIVE;
    const auto *first = static_cast<Event*>(from), *last = static_cast<Event*>(to);
    if (!first->stream || !last->stream) return 400;
    if (!first->us || !last->us) return 600;
    return *ms = float((last->us - first->us) / 1e3), 0;
}
int cuGetErrorName(int number, const char** name) {
    static const std::map<int, const char*> known = {
        {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},
        {200, "CUDA_ERROR_INVALID_IMAGE"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {214, "CUDA_ERROR_ECC_UNCORRECTABLE"}, {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
        {304, "CUDA_ERROR_OPERATING_SYSTEM"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
        {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"}, {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}, {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    };
    const auto found = known.find(number);
    return *name = found == known.end() ? nullptr : found->second, found == known.end();
}
int cuGetErrorString(int, const char** words) { return *words = "words of the driver", 0; }
}
