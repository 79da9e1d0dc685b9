// SPDX-License-Identifier: Apache-2.0
// How kernels are called: their addresses with the types of their parameters, and the table.
#pragma once

namespace kw {

// A kernel, and the function that reads its arguments out of 64-bit words.
struct Kernel {
    void (*code)();
    void (*call)(void (*code)(), const std::uint64_t* words);
    unsigned parameters;
};

template <typename T> T argument(std::uint64_t word) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof word,
                  "a kernel's parameter must be a pointer or a number of at most 8 bytes");
    std::remove_const_t<T> value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <typename... P, std::size_t... I>
void call_with(void (*kernel)(P...), const std::uint64_t* words, std::index_sequence<I...>) {
    kernel(argument<P>(words[I])...);
}

template <typename... P> constexpr Kernel kernel(void (*code)(P...)) {
    return {reinterpret_cast<void (*)()>(code),
            [](void (*raw)(), const std::uint64_t* words) {
                call_with(reinterpret_cast<void (*)(P...)>(raw), words,
                          std::index_sequence_for<P...>{});
            },
            sizeof...(P)};
}

// Plays the launch table: axes, tensors, the table and scratch buffers, as `kw_entry` gets them.
void play(void** arguments, const Kernel* kernels, unsigned axes, unsigned tensors);

}  // namespace kw
