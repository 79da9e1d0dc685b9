// Compiles only where our declarations of the driver API are those of cuda.h, which is on the
// include path. Pointers and handles count by their size.
#include <type_traits>

#include <cuda.h>

#include "driver.hpp"

template <typename... Ours, typename... Theirs>
constexpr bool same(int (*)(Ours...), CUresult (*)(Theirs...)) {
    if constexpr (sizeof...(Ours) != sizeof...(Theirs)) return false;
    else return ((sizeof(Ours) == sizeof(Theirs) &&
                  std::is_pointer_v<Ours> == (std::is_pointer_v<Theirs>)) && ...);
}


#define KW_SAME(member, symbol, parameters)                                                        \
    static_assert(same(decltype(cuda::driver.member){}, &symbol));
KW_DRIVER(KW_SAME)

static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, block) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(cuda::LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));

static_assert(int(cuda::OUT_OF_MEMORY) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(int(cuda::DEVICE_UNAVAILABLE) == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(int(cuda::NO_DEVICE) == CUDA_ERROR_NO_DEVICE);
static_assert(int(cuda::INVALID_DEVICE) == CUDA_ERROR_INVALID_DEVICE);
static_assert(int(cuda::ECC_UNCORRECTABLE) == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(int(cuda::NVLINK_UNCORRECTABLE) == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(int(cuda::INVALID_IMAGE) == CUDA_ERROR_INVALID_IMAGE);
static_assert(int(cuda::NO_BINARY_FOR_GPU) == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(int(cuda::INVALID_SOURCE) == CUDA_ERROR_INVALID_SOURCE);
static_assert(int(cuda::JIT_COMPILER_NOT_FOUND) == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(int(cuda::UNSUPPORTED_PTX_VERSION) == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(int(cuda::ILLEGAL_ADDRESS) == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(int(cuda::LAUNCH_FAILED) == CUDA_ERROR_LAUNCH_FAILED);
static_assert(int(cuda::OPERATING_SYSTEM) == CUDA_ERROR_OPERATING_SYSTEM);
static_assert(int(cuda::NOT_FOUND) == CUDA_ERROR_NOT_FOUND);
static_assert(int(cuda::LAUNCH_OUT_OF_RESOURCES) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(int(cuda::LAUNCH_TIMEOUT) == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(int(cuda::SYSTEM_NOT_READY) == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(int(cuda::SYSTEM_DRIVER_MISMATCH) == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(int(cuda::MPS_CONNECTION_FAILED) == CUDA_ERROR_MPS_CONNECTION_FAILED);
static_assert(int(cuda::MPS_CLIENT_TERMINATED) == CUDA_ERROR_MPS_CLIENT_TERMINATED);
static_assert(int(cuda::EXTERNAL_DEVICE) == CUDA_ERROR_EXTERNAL_DEVICE);
#if CUDA_VERSION >= 13000
static_assert(int(cuda::CONTAINED) == CUDA_ERROR_CONTAINED);
#endif
static_assert(int(cuda::UNKNOWN) == CUDA_ERROR_UNKNOWN);
static_assert(int(cuda::MULTIPROCESSOR_COUNT) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(int(cuda::KERNEL_EXEC_TIMEOUT) == CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
static_assert(int(cuda::L2_CACHE_SIZE) == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(int(cuda::COMPUTE_CAPABILITY_MAJOR) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(cuda::COMPUTE_CAPABILITY_MINOR) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(cuda::PAGEABLE_MEMORY_ACCESS) == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
static_assert(int(cuda::MAX_DYNAMIC_SHARED_SIZE_BYTES) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(cuda::NON_PORTABLE_CLUSTER_SIZE) == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(int(cuda::PERSISTING_L2_CACHE_SIZE) == CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
static_assert(unsigned(cuda::STREAM_NON_BLOCKING) == CU_STREAM_NON_BLOCKING);
static_assert(unsigned(cuda::SCHED_SPIN) == CU_CTX_SCHED_SPIN);
static_assert(int(cuda::CAPTURE_THREAD_LOCAL) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(int(cuda::ATTRIBUTE_CLUSTER_DIMENSION) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
