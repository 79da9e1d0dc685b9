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

namespace {

// The window of a variable: the dynamic part is number 0. What lies just before it counts as its own.
constexpr std::uint32_t FIRST = 1024, WINDOW = 1u << 20;
constexpr std::ptrdiff_t NEAR = 1 << 16;

// How far an address is from a piece of memory, both ends included; 0 inside.
std::ptrdiff_t distance(const char* at, const char* from, std::size_t bytes) {
    return at < from ? from - at : at > from + bytes ? at - (from + bytes) : 0;
}

}  // namespace

std::uint32_t shared_address(const void* address, int line) {
    const auto* const at = static_cast<const char*>(address);
    std::size_t best = 0;
    const char* start = here.dynamic;
    std::ptrdiff_t least = start ? distance(at, start, here.dynamic_bytes) : NEAR;
    for (std::size_t id = 0; id < sizes().size(); ++id) {
        const auto* const from = static_cast<const char*>(here.slots[id]);
        if (!from) continue;
        // The end of one piece may be the start of the next one.
        const std::ptrdiff_t away = distance(at, from, sizes()[id]);
        if (away < least || (away == least && at == from)) least = away, best = id + 1, start = from;
    }
    if (least >= NEAR) trap("an address outside shared memory is taken for a shared one", line);
    return FIRST + std::uint32_t(best) * WINDOW + std::uint32_t(at - start);
}

void* at_shared(std::uint32_t address) {
    const std::uint32_t place = address - FIRST + WINDOW / 2;
    const std::uint32_t number = place / WINDOW;
    const std::ptrdiff_t offset = std::ptrdiff_t(place % WINDOW) - std::ptrdiff_t(WINDOW / 2);
    if (number == 0) return here.dynamic + offset;
    // What belongs to no variable lies at an address that nothing can be read from.
    if (number > sizes().size()) return reinterpret_cast<void*>(std::uintptr_t(address));
    void* const piece = here.slots[number - 1];
    return static_cast<char*>(piece ? piece : make_slot(number - 1)) + offset;
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
