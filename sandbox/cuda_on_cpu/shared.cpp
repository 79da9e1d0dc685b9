// SPDX-License-Identifier: Apache-2.0
// The memory of a block: one piece of the heap for each static variable, one for the dynamic part.
#include <cstdlib>

#include "runtime.h"

namespace {

constexpr std::size_t ALIGNMENT = 128;  // all banks once
constexpr int UNWRITTEN = 0xFF;         // a NaN as a float, -1 as an index

std::vector<std::size_t>& sizes() {
    static std::vector<std::size_t> known;
    return known;
}

void* piece(std::size_t bytes) {
    void* at = nullptr;
    if (posix_memalign(&at, ALIGNMENT, bytes ? bytes : 1) != 0)
        kw::leave(kw::BROKEN_TABLE, "no memory for %zu bytes of shared memory", bytes);
    return at;
}

}  // namespace

namespace kw {

unsigned new_slot(std::size_t bytes) {
    sizes().push_back(bytes);
    return unsigned(sizes().size() - 1);
}

void* make_slot(unsigned id) { return here.owner->fill_slot(id); }

bool is_shared(const void* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto lies_in = [address](const void* from, std::size_t bytes) {
        return from && address - reinterpret_cast<std::uintptr_t>(from) < bytes;
    };
    if (lies_in(here.dynamic, here.dynamic_bytes)) return true;
    for (std::size_t id = 0; id < sizes().size(); ++id)
        if (lies_in(here.slots[id], sizes()[id])) return true;
    return false;
}

void Block::begin_shared(std::size_t bytes) {
    slots_.resize(sizes().size());
    memory_.resize(sizes().size());
    here.slots = slots_.data();
    std::free(dynamic_);
    dynamic_ = piece(bytes);
    here.dynamic = static_cast<char*>(dynamic_);
    here.dynamic_bytes = bytes;
}

void Block::fill_dynamic() { std::memset(dynamic_, UNWRITTEN, call_->shared_bytes); }

void* Block::fill_slot(unsigned id) {
    if (!memory_[id]) memory_[id] = piece(sizes()[id]);
    used_.push_back(id);
    slots_[id] = memory_[id];
    watch::shared_begins(slots_[id], sizes()[id]);
    return std::memset(slots_[id], UNWRITTEN, sizes()[id]);
}

void Block::forget_slots() {
    for (unsigned id : used_) slots_[id] = nullptr;
    used_.clear();
}

}  // namespace kw
