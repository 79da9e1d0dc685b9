// SPDX-License-Identifier: Apache-2.0
// Every access of the candidate in the access build calls one of these: the compiler's
// instrumentation for a thread sanitizer, which is not linked.
#include "access.h"

#define KW_HOOK(NAME, KIND, BYTES)                                                          \
    extern "C" void __tsan_##NAME(const void* at) {                                         \
        kw::watch::told(at, kw::watch::Kind::KIND, BYTES, __builtin_return_address(0));     \
    }
#define KW_VOLATILE(NAME, KIND, BYTES)                                                          \
    extern "C" void __tsan_volatile_##NAME(const void* at) {                                    \
        kw::watch::told(at, kw::watch::Kind::KIND, BYTES, __builtin_return_address(0), true);   \
    }
#define KW_HOOKS(BYTES)                                                                     \
    KW_HOOK(read##BYTES, READ, BYTES)                                                       \
    KW_HOOK(write##BYTES, WRITE, BYTES)                                                     \
    KW_VOLATILE(read##BYTES, READ, BYTES)                                              \
    KW_VOLATILE(write##BYTES, WRITE, BYTES)                                            \
    KW_HOOK(unaligned_read##BYTES, READ, BYTES)                                             \
    KW_HOOK(unaligned_write##BYTES, WRITE, BYTES)
KW_HOOKS(1) KW_HOOKS(2) KW_HOOKS(4) KW_HOOKS(8) KW_HOOKS(16)

extern "C" {
void __tsan_read_range(const void* at, std::size_t bytes) {
    kw::watch::told(at, kw::watch::Kind::READ, unsigned(bytes), __builtin_return_address(0));
}
void __tsan_write_range(const void* at, std::size_t bytes) {
    kw::watch::told(at, kw::watch::Kind::WRITE, unsigned(bytes), __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
}
