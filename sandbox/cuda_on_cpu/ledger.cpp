// SPDX-License-Identifier: Apache-2.0
// The ledger's rules: what orders two accesses to one word of global memory.
#include "ledger.h"

#include <algorithm>

namespace kw::watch {

// What outputs and scratch buffers are filled with before the call (sandbox/run/once.py).
constexpr std::uint32_t UNWRITTEN = 0xFFFFFFFF;

Ledger::Cell& Ledger::Buffer::at(std::size_t word) {
    auto& page = pages[word / PAGE];
    if (!page) page.reset(new Cell[PAGE]);
    return page[word % PAGE];
}

void Ledger::add(unsigned number, std::uintptr_t from, std::uintptr_t to, Writer* writers) {
    Buffer& buffer = buffers_[number];
    buffer.from = from, buffer.to = to, buffer.writers = writers;
    buffer.pages.resize((to - from) / 4 / PAGE + 1);
}

void Ledger::launch_begins() {
    ++launch_;
    sides_.clear();
}

void Ledger::fence(const Now& now) { sides_[now.block].fenced = ++time_; }

void Ledger::meet(const Now& now, bool may_publish, bool may_acquire) {
    Side& side = sides_[now.block];
    const std::uint64_t time = ++time_;
    const std::uint64_t known = side.published.empty() ? 0 : side.published.back().covers;
    if (may_publish && side.fenced > known) side.published.push_back({time, side.fenced});
    if (may_acquire) side.acquired = acquired_[now.rank] = time;
}

Conflict Ledger::access(unsigned number, std::uintptr_t at, const Place& place, std::uint32_t site,
                        const Now& now, const Order& order) {
    Buffer& buffer = buffers_.at(number);
    Conflict found;
    found.buffer = number;
    const std::uintptr_t end = std::min(at + place.bytes, buffer.to);
    ++time_;
    while (at < end) {
        const std::uintptr_t next = std::min(end, (at / 4 + 1) * 4);
        const std::size_t word = (at - buffer.from) / 4;
        Cell& cell = buffer.at(word);
        const auto bytes = std::uint8_t(((1u << (next - at)) - 1) << (at & 3));
        const Entry own{time_, launch_, now.block, site, now.epoch, now.clock,
                        std::uint16_t(now.rank), bytes, place.kind, place.is_volatile};
        if (own.kind != Kind::WRITE && cell.write.time == 0 && bytes == 0xF)
            found.is_unset |= *reinterpret_cast<const std::uint32_t*>(at) == UNWRITTEN;
        compare(found, cell.write, own, now, order);
        if (own.kind != Kind::READ)
            for (const Entry& read : cell.reads) compare(found, read, own, now, order);
        remember(cell, own);
        if (own.kind != Kind::READ && buffer.writers)
            buffer.writers[word] = {place.code, place.line, launch_, now.block, now.rank};
        at = next;
    }
    return found;
}

void Ledger::compare(Conflict& found, const Entry& before, const Entry& own, const Now& now,
                     const Order& order) const {
    if (before.launch != launch_ || !(before.bytes & own.bytes)) return;
    const bool is_read = before.kind == Kind::READ || own.kind == Kind::READ;
    // Threads meet at volatile flags and at atomics.
    if (before.kind == Kind::ATOMIC && own.kind == Kind::ATOMIC) return;
    if (before.is_volatile && own.is_volatile && is_read) return;
    if ((before.is_volatile && own.kind == Kind::ATOMIC) ||
        (own.is_volatile && before.kind == Kind::ATOMIC))
        return;
    if (is_ordered(before, now, order)) return;
    // Loops around atomicCAS begin with a plain read of what others change.
    const bool is_weak = is_read && (before.kind == Kind::ATOMIC || own.kind == Kind::ATOMIC);
    if (found.is_any && (is_weak || !found.is_weak)) return;
    found.is_any = true, found.is_weak = is_weak;
    found.first = before, found.second = own;
}

bool Ledger::is_ordered(const Entry& before, const Now& now, const Order& order) const {
    if (before.block != now.block) {
        const auto own = sides_.find(now.block);
        return is_known(before, own == sides_.end() ? 0 : own->second.acquired);
    }
    return before.rank == now.rank || before.epoch != now.epoch ||
           order.has_heard(now.rank, before.rank, before.clock) ||
           is_known(before, acquired_[now.rank]);
}

// Whether who wrote or read it has passed a fence, then an atomic, and who asks one after that.
// Which words these were is not asked: what is reported shall be a mistake.
bool Ledger::is_known(const Entry& before, std::uint64_t acquired) const {
    if (before.is_volatile || before.kind == Kind::ATOMIC) return before.time <= acquired;
    const auto side = sides_.find(before.block);
    if (side == sides_.end()) return false;
    for (const Published& one : side->second.published)
        if (one.covers >= before.time) return one.when <= acquired;
    return false;
}

void Ledger::remember(Cell& cell, const Entry& own) {
    if (own.kind != Kind::READ) {
        cell.write = own;
        return;
    }
    Entry& last = cell.reads[0];
    if (last.launch == own.launch && last.block != own.block) {
        cell.reads[2] = last;
        cell.reads[1] = {};
    } else if (last.launch == own.launch && last.rank != own.rank)
        cell.reads[1] = last;
    last = own;
}

}  // namespace kw::watch
