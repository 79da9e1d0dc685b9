// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver API that the device runner uses, declared here and found at run time.
//
// Names, types and numbers are those of the CUDA driver API reference; the ABI of each entry point
// is fixed by its versioned symbol. No header of NVIDIA's is needed, and no library at build time.
// Every result that is not success ends the process with a status that says whose failure it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <unistd.h>

#include "../wire.hpp"

namespace cuda {

using Result = int;
using Device = int;
using Handle = void*;      // contexts, modules, functions, streams, events, graphs
using Address = uint64_t;  // CUdeviceptr

enum : Result {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, DEVICE_UNAVAILABLE = 46, NO_DEVICE = 100,
    INVALID_DEVICE = 101, INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209, ECC_UNCORRECTABLE = 214,
    NVLINK_UNCORRECTABLE = 220, JIT_COMPILER_NOT_FOUND = 221, UNSUPPORTED_PTX_VERSION = 222,
    CONTAINED = 226, INVALID_SOURCE = 300, OPERATING_SYSTEM = 304, NOT_FOUND = 500,
    NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_OUT_OF_RESOURCES = 701, LAUNCH_TIMEOUT = 702,
    LAUNCH_FAILED = 719, SYSTEM_NOT_READY = 802, SYSTEM_DRIVER_MISMATCH = 803,
    MPS_CONNECTION_FAILED = 805, MPS_CLIENT_TERMINATED = 810, EXTERNAL_DEVICE = 911, UNKNOWN = 999,
};
enum DeviceAttribute : int {
    MULTIPROCESSOR_COUNT = 16, KERNEL_EXEC_TIMEOUT = 17, L2_CACHE_SIZE = 38,
    COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76, PAGEABLE_MEMORY_ACCESS = 88,
};
enum FunctionAttribute : int { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, NON_PORTABLE_CLUSTER_SIZE = 14 };
enum Limit : int { PERSISTING_L2_CACHE_SIZE = 6 };
enum : unsigned { STREAM_NON_BLOCKING = 1, EVENT_DEFAULT = 0, SCHED_SPIN = 1 };
enum CaptureMode : int { CAPTURE_THREAD_LOCAL = 1 };

struct LaunchAttribute {
    int id;
    char pad[4];
    union { char bytes[64]; struct { unsigned x, y, z; } cluster; } value;
};
enum : int { ATTRIBUTE_CLUSTER_DIMENSION = 4 };
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    Handle stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

// Member, symbol, parameters.
#define KW_DRIVER(X)                                                                               \
    X(init, cuInit, (unsigned))                                                                    \
    X(driver_version, cuDriverGetVersion, (int*))                                                  \
    X(device_get, cuDeviceGet, (Device*, int))                                                     \
    X(device_name, cuDeviceGetName, (char*, int, Device))                                          \
    X(device_attribute, cuDeviceGetAttribute, (int*, int, Device))                                 \
    X(device_total_memory, cuDeviceTotalMem_v2, (size_t*, Device))                                 \
    X(context_retain, cuDevicePrimaryCtxRetain, (Handle*, Device))                                 \
    X(context_set_flags, cuDevicePrimaryCtxSetFlags_v2, (Device, unsigned))                        \
    X(context_set_current, cuCtxSetCurrent, (Handle))                                              \
    X(synchronize, cuCtxSynchronize, ())                                                           \
    X(set_limit, cuCtxSetLimit, (int, size_t))                                                     \
    X(reset_persisting_l2, cuCtxResetPersistingL2Cache, ())                                        \
    X(module_load, cuModuleLoadData, (Handle*, const void*))                                       \
    X(module_function, cuModuleGetFunction, (Handle*, Handle, const char*))                        \
    X(function_set, cuFuncSetAttribute, (Handle, int, int))                                        \
    X(launch, cuLaunchKernelEx, (const LaunchConfig*, Handle, void**, void**))                     \
    X(memory_alloc, cuMemAlloc_v2, (Address*, size_t))                                             \
    X(memory_free, cuMemFree_v2, (Address))                                                        \
    X(memory_info, cuMemGetInfo_v2, (size_t*, size_t*))                                            \
    X(copy_to_device, cuMemcpyHtoD_v2, (Address, const void*, size_t))                             \
    X(copy_to_host, cuMemcpyDtoH_v2, (void*, Address, size_t))                                     \
    X(copy_on_device, cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Handle))                    \
    X(set_words, cuMemsetD32Async, (Address, unsigned, size_t, Handle))                            \
    X(set_bytes, cuMemsetD8Async, (Address, unsigned char, size_t, Handle))                        \
    X(stream_create, cuStreamCreate, (Handle*, unsigned))                                          \
    X(stream_synchronize, cuStreamSynchronize, (Handle))                                           \
    X(capture_begin, cuStreamBeginCapture_v2, (Handle, int))                                       \
    X(capture_end, cuStreamEndCapture, (Handle, Handle*))                                          \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (Handle*, Handle, unsigned long long))       \
    X(graph_upload, cuGraphUpload, (Handle, Handle))                                               \
    X(graph_launch, cuGraphLaunch, (Handle, Handle))                                               \
    X(graph_exec_destroy, cuGraphExecDestroy, (Handle))                                            \
    X(graph_destroy, cuGraphDestroy, (Handle))                                                     \
    X(event_create, cuEventCreate, (Handle*, unsigned))                                            \
    X(event_record, cuEventRecord, (Handle, Handle))                                               \
    X(event_synchronize, cuEventSynchronize, (Handle))                                             \
    X(event_elapsed_ms, cuEventElapsedTime, (float*, Handle, Handle))                              \
    X(error_name, cuGetErrorName, (Result, const char**))                                          \
    X(error_words, cuGetErrorString, (Result, const char**))

struct Driver {
#define KW_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
    KW_DRIVER(KW_MEMBER)
#undef KW_MEMBER
};

inline Driver driver;

// What the process leaves with; program.py holds the same numbers.
enum Exit : int {
    CODE_REFUSED = 88, TOOK_TOO_LONG = 89, KERNEL_FAILED = 90, WROTE_INPUT = 91, TOO_MUCH = 92, BAD_PLAN = 93,
    DEVICE_FAILED = 94,
};

inline const char* name_of(Result result) {
    const char* name = nullptr;
    if (!driver.error_name || driver.error_name(result, &name) != SUCCESS || !name)
        return "an error without a name";
    return name;
}

inline const char* words_of(Result result) {
    const char* words = nullptr;
    if (!driver.error_words || driver.error_words(result, &words) != SUCCESS || !words) return "?";
    return words;
}

// Whose failure a result is, once code of the candidate may have run.
inline int blame(Result result) {
    switch (result) {
        case OUT_OF_MEMORY: case LAUNCH_OUT_OF_RESOURCES: return TOO_MUCH;
        case LAUNCH_TIMEOUT: return TOOK_TOO_LONG;
        case DEVICE_UNAVAILABLE: case NO_DEVICE: case INVALID_DEVICE: case ECC_UNCORRECTABLE:
        case NVLINK_UNCORRECTABLE: case CONTAINED: case OPERATING_SYSTEM: case SYSTEM_NOT_READY:
        case SYSTEM_DRIVER_MISMATCH: case EXTERNAL_DEVICE: case UNKNOWN:
            return DEVICE_FAILED;
        default:
            return result >= MPS_CONNECTION_FAILED && result <= MPS_CLIENT_TERMINATED
                ? DEVICE_FAILED : KERNEL_FAILED;
    }
}

// Whether the driver does not take what our compiler makes, whatever the candidate's source is.
inline bool is_of_the_build(Result result) {
    return result == INVALID_IMAGE || result == NO_BINARY_FOR_GPU || result == INVALID_SOURCE ||
           result == UNSUPPORTED_PTX_VERSION || result == JIT_COMPILER_NOT_FOUND;
}

// Whether it tells of a kernel that was launched before: any call may give it.
inline bool is_late(Result result) {
    return result >= ILLEGAL_ADDRESS && result <= LAUNCH_FAILED && result != LAUNCH_OUT_OF_RESOURCES;
}

inline int status_for_failures = wire::START_FAILED;  // 0: blame() decides

inline void check(Result result, const char* doing) {
    if (result == SUCCESS) return;
    std::fflush(stdout);
    std::fprintf(stderr, "%s (%d: %s) %s\n", name_of(result), result, words_of(result), doing);
    _exit(status_for_failures ? status_for_failures : blame(result));
}

// Loads the driver's library and makes the primary context of one device current.
inline Device open(const char* library, int ordinal) {
    void* held = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!held) {
        std::fprintf(stderr, "runner: the CUDA driver cannot be loaded: %s\n", dlerror());
        _exit(wire::START_FAILED);
    }
#define KW_FIND(member, symbol, parameters)                                                        \
    driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(held, #symbol));               \
    if (!driver.member) {                                                                          \
        std::fprintf(stderr, "runner: the CUDA driver has no %s; it must be of CUDA 11.8 or "      \
                             "later (driver 520)\n", #symbol);                                     \
        _exit(wire::START_FAILED);                                                                 \
    }
    KW_DRIVER(KW_FIND)
#undef KW_FIND
    check(driver.init(0), "while the CUDA driver started");
    Device device = 0;
    check(driver.device_get(&device, ordinal), "while the device was looked for");
    Handle context = nullptr;
    // Spinning keeps the host's part of a call short; the flag may be refused once a context is up.
    driver.context_set_flags(device, SCHED_SPIN);
    check(driver.context_retain(&context, device), "while the context was made");
    check(driver.context_set_current(context), "while the context was made current");
    return device;
}

inline int attribute(Device device, DeviceAttribute which) {
    int value = 0;
    check(driver.device_attribute(&value, which, device), "while the device was asked");
    return value;
}

}  // namespace cuda
