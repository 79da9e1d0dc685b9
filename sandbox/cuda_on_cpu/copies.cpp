// SPDX-License-Identifier: Apache-2.0
// The copies that threads have begun and not waited for.
#include "runtime.h"

namespace kw {

void Block::hold_copy(const Copy& copy) {
    Thread& mine = me();
    mine.copies.push_back(copy);
    mine.copies.back().group = mine.groups;
}

void Block::commit_copies() { ++me().groups; }

void Block::await_copies(std::size_t left) {
    Thread& mine = me();
    std::size_t kept = 0;
    for (const Copy& copy : mine.copies) {
        if (copy.group + left >= mine.groups) {
            mine.copies[kept++] = copy;
            continue;
        }
        // First: whether a write changes anything is seen by what was there before.
        note_arrival(copy.to, copy.bytes, copy.line);
        std::memcpy(copy.to, copy.data, copy.bytes);
    }
    mine.copies.resize(kept);
}

void hold_copy(const Copy& copy) { here.owner->hold_copy(copy); }
void commit_copies() { here.owner->commit_copies(); }
void await_copies(std::size_t left) { here.owner->await_copies(left); }
void await_all_copies() {
    commit_copies();
    await_copies(0);
}

}  // namespace kw
