// SPDX-License-Identifier: Apache-2.0
// The memory of calls on the device: every tensor with its guard bands, as they are on the host.
//
// A slot is uploaded right before its call, so that no kernel finds the inputs of a later one, and
// fetched right after it. Its place comes from a ring that is larger than four times the L2 cache:
// addresses change from call to call, and what a kernel has made stay in the cache does not help
// the next one (verification.md A7, C7, C11). Host memory is never registered with the driver,
// since kernels could then read the inputs of calls that are still to come.
#pragma once

#include <algorithm>
#include <vector>

#include "candidate.hpp"

namespace kw {

constexpr uint64_t ALIGNMENT = 256;  // what cuMemAlloc gives at least
constexpr uint64_t PIECE = 4 << 20;
constexpr unsigned NEVER_SET = 0x7fc0dead;  // a NaN; as an index far beyond any tensor

// One tensor, work buffer or table of a slot.
struct Placed {
    const char* host;  // the start of the band before it
    uint64_t bytes;    // without the bands
    uint64_t guard;    // bytes of each band; a sanitizer needs none
    wire::Role role;
    bool is_scratch;
    cuda::Address device = 0;  // the start of the band before it

    uint64_t extent() const { return bytes + 2 * guard; }
    uint64_t room() const { return (extent() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }
    Buffer buffer() const { return {device + guard, bytes}; }
};

struct Slot {
    bool is_up = false;
    std::vector<Placed> placed;  // tensors, then work buffers
    std::vector<Launch> launches;
};

struct Host {
    char *inputs, *outputs;
    uint64_t input_bytes, output_bytes;

    const wire::Entry& entry(uint64_t slot) const {
        return reinterpret_cast<const wire::Entry*>(inputs)[slot];
    }
    // Where a region with its bands begins; ends the process where it does not lie in its memory.
    const char* at(wire::Role role, uint64_t offset, uint64_t bytes, uint64_t guard) const {
        const uint64_t all = role == wire::INPUT ? input_bytes : output_bytes;
        if (offset < guard || offset > all || bytes > all - offset || guard > all - offset - bytes)
            refuse(wire::BROKEN, "runner: the call table points outside of its memory");
        return (role == wire::INPUT ? inputs : outputs) + offset - guard;
    }
};

class Memory {
  public:
    Memory(Plan& plan, Host host, cuda::Handle stream, uint64_t l2_bytes)
        : plan_(plan), host_(host), stream_(stream), spare_(4 * l2_bytes) {}

    Slot& slot(uint64_t number) { return slots_[number]; }

    void upload(uint64_t number, uint64_t count) {
        uint64_t room = 0;
        for (uint64_t i = number; i < number + count; ++i) room += lay_out(i);
        if (!plan_.is_separate) make_room(room);
        for (uint64_t i = number; i < number + count; ++i) {
            for (auto& placed : slots_[i].placed) fill(placed);
            prepare(i);
        }
        // Copies from pageable memory may return before the data is there.
        cuda::check(cuda::driver.synchronize(), "while inputs were copied to the device");
    }

    // Outputs and every guard band go back; inputs must be what they were.
    void fetch(uint64_t number) {
        auto& slot = slots_[number];
        for (size_t i = 0; i < slot.placed.size(); ++i) {
            auto& placed = slot.placed[i];
            if (placed.role == wire::INPUT) compare(placed, i);
            else if (!plan_.is_separate) bring_back(placed);
        }
        if (plan_.is_separate)
            for (auto& placed : slot.placed)
                cuda::check(cuda::driver.memory_free(placed.device), "while memory was given back");
        slot.is_up = false;
    }

    // Keeps a copy of a slot's inputs on the device.
    void keep_inputs(uint64_t number) {
        uint64_t room = 0;
        for (const auto& placed : slots_[number].placed)
            if (placed.role == wire::INPUT) room += placed.room();
        if (room > kept_bytes_) {
            if (kept_) cuda::check(cuda::driver.memory_free(kept_), "while memory was given back");
            kept_bytes_ = room;
            kept_ = allocate(room);
        }
        copy_inputs(number, true);
        cuda::check(cuda::driver.stream_synchronize(stream_), "while inputs were kept");
    }

    // Enqueues that copy back in their place, from which the cache holds what fits.
    void lay_inputs(uint64_t number) { copy_inputs(number, false); }

    // Over words of each output, modulo 2^64.
    uint64_t sum(uint64_t number, uint64_t choice) const {
        uint64_t total = 0;
        for (const auto& placed : slots_[number].placed)
            if (placed.role == wire::OUTPUT && !placed.is_scratch)
                total += wire::sum(placed.host + placed.guard, placed.bytes, choice);
        return total;
    }

  private:
    void copy_inputs(uint64_t number, bool is_kept) {
        cuda::Address kept = kept_;
        for (const auto& placed : slots_[number].placed) {
            if (placed.role != wire::INPUT) continue;
            const auto to = is_kept ? kept : placed.device, from = is_kept ? placed.device : kept;
            cuda::check(cuda::driver.copy_on_device(to, from, placed.extent(), stream_),
                        "while inputs were copied on the device");
            kept += placed.room();
        }
    }

    // Which argument is what: axes, tensors, the launch table, work buffers.
    uint64_t lay_out(uint64_t number) {
        auto& slot = slots_[number];
        const auto& entry = host_.entry(number);
        const uint64_t table = plan_.axes + plan_.tensors.size();
        if (slot.is_up || entry.count > wire::MAX_ARGUMENTS / 2 || entry.count <= table ||
            entry.role(table) != wire::INPUT)
            refuse(wire::BROKEN, "runner: slot %d cannot be uploaded", int(number));
        slot.placed.clear();
        uint64_t room = 0;
        for (uint64_t i = plan_.axes; i < entry.count; ++i) {
            if (i == table) continue;
            const auto role = static_cast<wire::Role>(entry.role(i));
            const uint64_t bytes = entry.bytes(i), guard = plan_.is_separate ? 0 : wire::GUARD_BYTES;
            const char* host = host_.at(role, entry.value(i), bytes, guard);
            slot.placed.push_back({host, bytes, guard, role, i > table});
            room += slot.placed.back().room();
        }
        return room;
    }

    void prepare(uint64_t number) {
        auto& slot = slots_[number];
        const auto& entry = host_.entry(number);
        const uint64_t table = plan_.axes + plan_.tensors.size(), bytes = entry.bytes(table);
        std::vector<Buffer> tensors, scratch;
        for (const auto& placed : slot.placed)
            (placed.is_scratch ? scratch : tensors).push_back(placed.buffer());
        slot.launches = read_table(host_.at(wire::INPUT, entry.value(table), bytes, 0), bytes,
                                   plan_, stream_, tensors, scratch);
        slot.is_up = true;
    }

    void make_room(uint64_t room) {
        if (room + spare_ > size_) {
            if (ring_) cuda::check(cuda::driver.memory_free(ring_), "while memory was given back");
            size_ = room + spare_;
            ring_ = allocate(size_);
            cuda::check(cuda::driver.set_words(ring_, NEVER_SET, size_ / 4, stream_),
                        "while memory was poisoned");
            cuda::check(cuda::driver.stream_synchronize(stream_), "while memory was poisoned");
            next_ = 0;
        }
        if (next_ + room > size_) next_ = 0;
    }

    cuda::Address allocate(uint64_t bytes) {
        cuda::Address at = 0;
        const auto result = cuda::driver.memory_alloc(&at, std::max<uint64_t>(bytes, 1));
        if (result == cuda::OUT_OF_MEMORY) {
            size_t unused = 0, total = 0;
            cuda::driver.memory_info(&unused, &total);
            // Memory that others hold is no fault of the candidate's.
            const bool would_fit = bytes < total / 10 * 9;
            refuse(would_fit ? cuda::DEVICE_FAILED : cuda::TOO_MUCH,
                   "%zu MiB of device memory are needed, %zu MiB of %zu MiB are free",
                   size_t(bytes >> 20), unused >> 20, total >> 20);
        }
        cuda::check(result, "while device memory was allocated");
        return at;
    }

    void fill(Placed& placed) {
        if (plan_.is_separate) placed.device = allocate(placed.extent());
        else { placed.device = ring_ + next_; next_ += placed.room(); }
        const char* const doing = "while inputs were copied to the device";
        // A sanitizer is to see reads of what was never written.
        if (plan_.is_separate && placed.role != wire::INPUT) return;
        if (!placed.is_scratch) {
            copy_in(placed.device, placed.host, placed.extent(), doing);
            return;
        }
        const uint64_t guard = placed.guard, after = guard + placed.bytes;
        unsigned pattern = NEVER_SET;  // the referee's choice stands in the buffer on the host
        std::memcpy(&pattern, placed.host + guard, std::min<uint64_t>(4, placed.bytes));
        const uint64_t words = placed.bytes / 4;
        if (words)
            cuda::check(cuda::driver.set_words(placed.device + guard, pattern, words, stream_),
                        "while a work buffer was poisoned");
        cuda::check(cuda::driver.stream_synchronize(stream_), "while a work buffer was poisoned");
        copy_in(placed.device, placed.host, guard, doing);
        copy_in(placed.device + after, placed.host + after, guard, doing);
    }

    static void copy_in(cuda::Address to, const char* from, uint64_t bytes, const char* doing) {
        if (bytes) cuda::check(cuda::driver.copy_to_device(to, from, bytes), doing);
    }

    void bring_back(const Placed& placed) {
        auto* to = const_cast<char*>(placed.host);
        const uint64_t guard = placed.guard, after = guard + placed.bytes;
        const char* const doing = "while outputs were copied from the device";
        if (!placed.is_scratch) {
            copy_out(to, placed.device, placed.extent(), doing);
            return;
        }
        copy_out(to, placed.device, guard, doing);
        copy_out(to + after, placed.device + after, guard, doing);
    }

    static void copy_out(char* to, cuda::Address from, uint64_t bytes, const char* doing) {
        if (bytes) cuda::check(cuda::driver.copy_to_host(to, from, bytes), doing);
    }

    // On the CPU inputs are read-only pages; here a kernel could use them as it likes.
    void compare(const Placed& placed, size_t number) {
        std::vector<char> piece(std::min(PIECE, placed.extent()));
        for (uint64_t done = 0; done < placed.extent(); done += piece.size()) {
            const uint64_t bytes = std::min<uint64_t>(piece.size(), placed.extent() - done);
            copy_out(piece.data(), placed.device + done, bytes, "while inputs were compared");
            if (std::memcmp(piece.data(), placed.host + done, bytes) == 0) continue;
            uint64_t at = 0;
            while (piece[at] == placed.host[done + at]) ++at;
            const auto byte = static_cast<long long>(done + at - placed.guard);
            refuse(cuda::WROTE_INPUT, "%s of %llu bytes, at byte %lld",
                   plan_.tensors[number].c_str(), static_cast<unsigned long long>(placed.bytes),
                   byte);
        }
    }

    Plan& plan_;
    Host host_;
    cuda::Handle stream_;
    uint64_t spare_;
    cuda::Address ring_ = 0;
    uint64_t size_ = 0, next_ = 0;
    cuda::Address kept_ = 0;
    uint64_t kept_bytes_ = 0;
    Slot slots_[wire::MAX_SLOTS];
};

}  // namespace kw
