// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of inline PTX.
#pragma once

namespace kw::ptx {

// An address of a state space: 32 or 64 bits of shared memory, else of this process.
struct Shared {
    template <typename W> static void* at(W address, std::int64_t offset) {
        return at_shared(std::uint32_t(address + std::uint64_t(offset)));
    }
};
struct Generic {
    template <typename W> static void* at(W address, std::int64_t offset) {
        return reinterpret_cast<void*>(std::uintptr_t(address) + std::uintptr_t(offset));
    }
};

template <typename T, int COUNT> KW_UNSEEN void load(T (&out)[COUNT], const void* at, int line) {
    require_aligned(at, sizeof out, line);
    note_read(at, sizeof out, line);
    std::memcpy(&out, at, sizeof out);
}
template <typename T, int COUNT> KW_UNSEEN void store(void* at, const T (&given)[COUNT], int line) {
    require_aligned(at, sizeof given, line);
    note_write(at, sizeof given, line);
    std::memcpy(at, &given, sizeof given);
}

// Accesses at which threads meet: volatile, relaxed, acquire and release.
template <typename T> KW_UNSEEN T load_word(const void* at, bool is_acquire, int line) {
    require_aligned(at, sizeof(T), line);
    note_volatile(at, sizeof(T), false, line);
    using W = typename Word<sizeof(T)>::type;
    const W word = __atomic_load_n(static_cast<const W*>(at), __ATOMIC_SEQ_CST);
    if (is_acquire) note_fence();
    return get<T>(word);
}
template <typename T> KW_UNSEEN void store_word(void* at, T value, bool is_release, int line) {
    require_aligned(at, sizeof(T), line);
    if (is_release) note_fence();
    note_volatile(at, sizeof(T), true, line);
    using W = typename Word<sizeof(T)>::type;
    W word;
    put(word, value);
    __atomic_store_n(static_cast<W*>(at), word, __ATOMIC_SEQ_CST);
}

struct Add { template <typename T> static T run(T* at, T v, int l) { return atomicAdd(at, v, l); } };
struct Min { template <typename T> static T run(T* at, T v, int l) { return atomicMin(at, v, l); } };
struct Max { template <typename T> static T run(T* at, T v, int l) { return atomicMax(at, v, l); } };
struct And { template <typename T> static T run(T* at, T v, int l) { return atomicAnd(at, v, l); } };
struct Or { template <typename T> static T run(T* at, T v, int l) { return atomicOr(at, v, l); } };
struct Xor { template <typename T> static T run(T* at, T v, int l) { return atomicXor(at, v, l); } };
struct Exch { template <typename T> static T run(T* at, T v, int l) { return atomicExch(at, v, l); } };

// FENCES: before (1), after (2).
template <typename F, typename T, int FENCES> T change(void* at, T value, int line) {
    require_aligned(at, sizeof(T), line);
    if (FENCES & 1) note_fence();
    const T was = F::run(static_cast<T*>(at), value, line);
    if (FENCES & 2) note_fence();
    return was;
}
template <typename T, int FENCES> T exchange_if(void* at, T expected, T value, int line) {
    require_aligned(at, sizeof(T), line);
    if (FENCES & 1) note_fence();
    const T was = atomicCAS(static_cast<T*>(at), expected, value, line);
    if (FENCES & 2) note_fence();
    return was;
}

}  // namespace kw::ptx
