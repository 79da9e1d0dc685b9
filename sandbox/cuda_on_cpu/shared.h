// SPDX-License-Identifier: Apache-2.0
// Shared memory. The builder rewrites `__shared__ float a[4], b;` to
//
//     struct kw_3 { float a[4], b; };
//     auto& a = kw::shared<kw_3, 0, decltype(kw_3::a)>(); auto& b = …
//
// so that each variable of each template instance is a block of its own on the heap, with what a
// sanitizer puts around it. Everything is filled with 0xFF for each block: floats read as NaN.
#pragma once

namespace kw {

unsigned new_slot(std::size_t bytes);
void* make_slot(unsigned id);
bool is_shared(const void* at);  // whether it lies in shared memory of the running block

template <typename Declaration, int Place, typename T> struct Slot {
    static inline const unsigned id = new_slot(sizeof(T));
};

template <typename Declaration, int Place, typename T> inline T& shared() {
    const unsigned id = Slot<Declaration, Place, T>::id;
    void* at = here.slots[id];
    return *static_cast<T*>(at ? at : make_slot(id));
}

// `extern __shared__ T s[];`: all of them start at the same address, and have the size that the
// launch gives them, which no type can say.
template <typename T> inline auto& dynamic() {
    using Element = std::remove_extent_t<T>;
    using Array = Element[(std::size_t(1) << 28) / sizeof(Element)];
    return *reinterpret_cast<Array*>(here.dynamic);
}

}  // namespace kw
