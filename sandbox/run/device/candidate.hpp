// SPDX-License-Identifier: Apache-2.0
// The candidate as the device sees it: its modules, its kernels, and one call's launches.
//
// `device.plan`, written by program.py, says how many axes and tensors a call has and which kernel
// is in which cubin. What a call launches comes with the call, as a table of 64-bit words
// (sandbox/plan/model.py). Both were made by the referee; they are checked all the same, since a
// wrong count of arguments would be read past the end by the driver.
#pragma once

#include <cstdarg>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "driver.hpp"

namespace kw {

struct Kernel {
    size_t cubin = 0, parameters = 0;
    std::string symbol;
    cuda::Handle function = nullptr;
    int64_t shared_bytes = 0;  // dynamic, the most that any call so far asked for
    bool is_wide = false;      // may have clusters beyond the portable size
};

struct Plan {
    size_t axes = 0;
    bool is_separate = false;  // every tensor an allocation of its own, for the sanitizer
    std::vector<std::string> tensors;
    std::vector<std::string> cubins;
    std::vector<Kernel> kernels;
};

struct Buffer { cuda::Address at; uint64_t bytes; };

struct Launch {
    int64_t kernel = 0;
    cuda::LaunchConfig config{};
    cuda::LaunchAttribute cluster{};
    std::vector<uint64_t> values;
    std::vector<void*> pointers;
};

enum ArgumentKind : int64_t { INTEGER, FLOAT32, FLOAT64, TENSOR, SCRATCH };
constexpr int64_t ZERO_FILL = -1;
constexpr int64_t MAX_LAUNCHES = 4096, MAX_PARAMETERS = 256, PORTABLE_CLUSTER = 8;

[[noreturn]] inline void refuse(int status, const char* format, ...) {
    va_list values;
    va_start(values, format);
    std::vfprintf(stderr, format, values);
    va_end(values);
    std::fputc('\n', stderr);
    _exit(status);
}

inline Plan read_plan(const std::string& folder) {
    Plan plan;
    std::ifstream file(folder + "/device.plan");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word, value;
        words >> word;
        if (word == "axes") words >> plan.axes;
        else if (word == "separate") words >> plan.is_separate;
        else if (word == "tensor") { words >> value; plan.tensors.push_back(value); }
        else if (word == "cubin") { words >> value; plan.cubins.push_back(folder + "/" + value); }
        else if (word == "kernel") {
            Kernel kernel;
            words >> kernel.cubin >> kernel.parameters >> kernel.symbol;
            plan.kernels.push_back(kernel);
        } else refuse(wire::START_FAILED, "runner: device.plan has the line '%s'", line.c_str());
        if (words.fail()) refuse(wire::START_FAILED, "runner: '%s' is not whole", line.c_str());
    }
    if (plan.kernels.empty()) refuse(wire::START_FAILED, "runner: device.plan names no kernel");
    return plan;
}

// Loads the modules; says why not on stderr.
inline bool load(Plan& plan) {
    std::vector<cuda::Handle> modules;
    for (const auto& path : plan.cubins) {
        std::ifstream file(path, std::ios::binary);
        const std::string image{std::istreambuf_iterator<char>(file), {}};
        cuda::Handle module = nullptr;
        const auto result = cuda::driver.module_load(&module, image.c_str());
        if (result == cuda::OUT_OF_MEMORY || cuda::is_of_the_build(result))
            refuse(result == cuda::OUT_OF_MEMORY ? cuda::TOO_MUCH : cuda::CODE_REFUSED,
                   "%s (%d: %s)", cuda::name_of(result), result, cuda::words_of(result));
        if (result != cuda::SUCCESS) {
            std::fprintf(stderr, "the driver refused the cubin: %s (%d: %s)\n",
                         cuda::name_of(result), result, cuda::words_of(result));
            return false;
        }
        modules.push_back(module);
    }
    for (auto& kernel : plan.kernels) {
        const auto result = kernel.cubin < modules.size()
            ? cuda::driver.module_function(&kernel.function, modules[kernel.cubin],
                                           kernel.symbol.c_str())
            : cuda::NOT_FOUND;
        if (result != cuda::SUCCESS) {
            std::fprintf(stderr, "the cubin has no kernel %s (%s)\n", kernel.symbol.c_str(),
                         cuda::name_of(result));
            return false;
        }
    }
    return true;
}

// The words of a table, in order; ends the process where there are too few.
class Words {
  public:
    Words(const char* at, uint64_t bytes) : at_(at), left_(bytes / 8) {}
    int64_t next() {
        if (left_-- == 0) refuse(BROKEN_TABLE, "runner: the launch table ends too early");
        int64_t word;
        std::memcpy(&word, at_, 8);
        at_ += 8;
        return word;
    }
    int64_t within(int64_t least, int64_t most, const char* what) {
        const int64_t word = next();
        if (word < least || word > most)
            refuse(BROKEN_TABLE, "runner: the launch table has %lld as %s",
                   static_cast<long long>(word), what);
        return word;
    }

  private:
    static constexpr int BROKEN_TABLE = cuda::BAD_PLAN;
    const char* at_;
    uint64_t left_;
};

// More dynamic shared memory than 48 KB, and wide clusters, must be asked for beforehand.
inline void opt_in(Kernel& kernel, int64_t shared_bytes, int64_t blocks_in_cluster) {
    if (shared_bytes > kernel.shared_bytes) {
        const auto result = cuda::driver.function_set(
            kernel.function, cuda::MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared_bytes));
        if (result != cuda::SUCCESS)
            refuse(cuda::TOO_MUCH, "%s asks for %lld bytes of dynamic shared memory: %s",
                   kernel.symbol.c_str(), static_cast<long long>(shared_bytes),
                   cuda::words_of(result));
        kernel.shared_bytes = shared_bytes;
    }
    if (blocks_in_cluster > PORTABLE_CLUSTER && !kernel.is_wide) {
        cuda::check(cuda::driver.function_set(kernel.function, cuda::NON_PORTABLE_CLUSTER_SIZE, 1),
                    "while a cluster of more than 8 blocks was asked for");
        kernel.is_wide = true;
    }
}

inline uint64_t argument(Words& words, const std::vector<Buffer>& tensors,
                         const std::vector<Buffer>& scratch) {
    const int64_t kind = words.within(INTEGER, SCRATCH, "the kind of an argument");
    const int64_t value = words.next(), offset = words.next();
    if (kind != TENSOR && kind != SCRATCH) return uint64_t(value);
    const auto& buffers = kind == TENSOR ? tensors : scratch;
    if (value < 0 || uint64_t(value) >= buffers.size())
        refuse(cuda::BAD_PLAN, "runner: the launch table names buffer %lld of %zu",
               static_cast<long long>(value), buffers.size());
    return buffers[size_t(value)].at + uint64_t(offset);
}

inline void read_launch(Launch& launch, Words& words, Plan& plan, cuda::Handle stream,
                        const std::vector<Buffer>& tensors, const std::vector<Buffer>& scratch) {
    constexpr int64_t MOST = 0x7fffffff;
    launch.kernel = words.within(ZERO_FILL, int64_t(plan.kernels.size()) - 1, "a kernel");
    for (auto& extent : launch.config.grid) extent = unsigned(words.within(1, MOST, "a grid"));
    for (auto& extent : launch.config.block) extent = unsigned(words.within(1, MOST, "a block"));
    const int64_t shared = words.within(0, MOST, "shared memory");
    int64_t cluster[3], blocks = 1;
    for (auto& extent : cluster) blocks *= extent = words.within(1, 64, "a cluster");
    const int64_t count = words.within(0, MAX_PARAMETERS, "a number of arguments");
    for (int64_t i = 0; i < count; ++i) launch.values.push_back(argument(words, tensors, scratch));
    for (auto& value : launch.values) launch.pointers.push_back(&value);
    if (launch.kernel == ZERO_FILL) {
        if (count != 2) refuse(cuda::BAD_PLAN, "runner: filling with zeros takes two arguments");
        return;
    }
    auto& kernel = plan.kernels[size_t(launch.kernel)];
    if (size_t(count) != kernel.parameters)
        refuse(cuda::BAD_PLAN, "%s has %zu parameters, and the plan passes %lld arguments",
               kernel.symbol.c_str(), kernel.parameters, static_cast<long long>(count));
    opt_in(kernel, shared, blocks);
    launch.config.shared_bytes = unsigned(shared);
    launch.config.stream = stream;
    if (blocks > 1) {
        launch.cluster.id = cuda::ATTRIBUTE_CLUSTER_DIMENSION;
        launch.cluster.value.cluster = {unsigned(cluster[0]), unsigned(cluster[1]),
                                        unsigned(cluster[2])};
        launch.config.attribute_count = 1;
    }
}

inline std::vector<Launch> read_table(const char* table, uint64_t bytes, Plan& plan,
                                      cuda::Handle stream, const std::vector<Buffer>& tensors,
                                      const std::vector<Buffer>& scratch) {
    Words words(table, bytes);
    std::vector<Launch> launches(size_t(words.within(0, MAX_LAUNCHES, "a number of launches")));
    for (auto& launch : launches) read_launch(launch, words, plan, stream, tensors, scratch);
    return launches;
}

inline void play(std::vector<Launch>& launches, const Plan& plan, cuda::Handle stream) {
    for (auto& launch : launches) {
        if (launch.kernel == ZERO_FILL) {
            cuda::check(cuda::driver.set_bytes(launch.values[0], 0, launch.values[1], stream),
                        "while a buffer was set to zero");
            continue;
        }
        const auto& kernel = plan.kernels[size_t(launch.kernel)];
        launch.config.attributes = launch.config.attribute_count ? &launch.cluster : nullptr;
        const auto result = cuda::driver.launch(&launch.config, kernel.function,
                                                launch.pointers.data(), nullptr);
        if (result == cuda::SUCCESS) continue;
        if (cuda::is_late(result)) cuda::check(result, "while its kernels ran");
        const unsigned *grid = launch.config.grid, *block = launch.config.block;
        refuse(cuda::blame(result), "%s (%d: %s) when %s was launched with grid %u x %u x %u, "
               "block %u x %u x %u and %u bytes of dynamic shared memory",
               cuda::name_of(result), result, cuda::words_of(result), kernel.symbol.c_str(),
               grid[0], grid[1], grid[2], block[0], block[1], block[2],
               launch.config.shared_bytes);
    }
}

}  // namespace kw
