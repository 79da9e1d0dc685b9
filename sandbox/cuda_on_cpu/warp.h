// SPDX-License-Identifier: Apache-2.0
// Operations of a warp: shuffles, votes, matches, reductions.
#pragma once

namespace kw {

// Each lane's answer is what the lane named in its argument gave; the argument is -1 for its own.
// The value of a lane that does not take part is undefined in CUDA: here all its bits are set,
// which is a NaN.
inline void exchange(Parts parts, unsigned) {
    for (unsigned lane = 0; lane < 32; ++lane) {
        const Part* const part = parts[lane];
        if (!part) continue;
        const Part* from = part->argument < 0 ? part : parts[part->argument & 31];
        if (from) {
            std::memcpy(part->out, from->in, part->bytes);
            continue;
        }
        std::memset(part->out, 0xFF, part->bytes);
        note_missing(lane, unsigned(part->argument & 31));
    }
}

template <typename T> T take_from(unsigned mask, const T& value, int source, int line) {
    static_assert(std::is_trivially_copyable_v<T>);
    T out;
    rendezvous(mask, exchange, {&value, &out, sizeof(T), source}, line);
    return out;
}

// What the lanes give, by lane, and which lanes took part.
template <typename T> struct Gathered {
    unsigned lanes;
    alignas(T) unsigned char room[32 * sizeof(T)];
    const T& of(unsigned lane) const { return reinterpret_cast<const T*>(room)[lane]; }
};
template <typename T> void gather(Parts parts, unsigned lanes) {
    for (const Part* part : parts) {
        if (!part) continue;
        auto* all = static_cast<Gathered<T>*>(part->out);
        all->lanes = lanes;
        for (unsigned left = lanes; left; left &= left - 1) {
            const int from = __builtin_ctz(left);
            std::memcpy(all->room + unsigned(from) * sizeof(T), parts[from]->in, sizeof(T));
        }
    }
}

inline void ballot(Parts parts, unsigned) {
    unsigned votes = 0;
    for (int i = 0; i < 32; ++i)
        if (parts[i] && parts[i]->argument) votes |= 1u << i;
    for (const Part* part : parts)
        if (part) *static_cast<unsigned*>(part->out) = votes;
}

inline bool is_same(const Part* one, const Part* other) {
    return std::memcmp(one->in, other->in, one->bytes) == 0;
}

inline void match_any(Parts parts, unsigned) {
    for (const Part* part : parts) {
        if (!part) continue;
        unsigned same = 0;
        for (int i = 0; i < 32; ++i)
            if (parts[i] && is_same(part, parts[i])) same |= 1u << i;
        *static_cast<unsigned*>(part->out) = same;
    }
}

template <typename T, typename F> void reduce(Parts parts, unsigned) {
    T sum{};
    bool is_first = true;
    for (const Part* part : parts) {
        if (!part) continue;
        const T value = *static_cast<const T*>(part->in);
        sum = is_first ? value : F{}(sum, value);
        is_first = false;
    }
    for (const Part* part : parts)
        if (part) *static_cast<T*>(part->out) = sum;
}

template <typename F, typename T> T reduced(unsigned mask, T value, int line) {
    T out;
    rendezvous(mask, reduce<T, F>, {&value, &out, sizeof(T), 0}, line);
    return out;
}

struct Sum { template <typename T> T operator()(T a, T b) const { return wrapped_sum(a, b); } };
struct And { template <typename T> T operator()(T a, T b) const { return a & b; } };
struct Or { template <typename T> T operator()(T a, T b) const { return a | b; } };
struct Xor { template <typename T> T operator()(T a, T b) const { return a ^ b; } };
struct Least { template <typename T> T operator()(T a, T b) const { return b < a ? b : a; } };
struct Greatest { template <typename T> T operator()(T a, T b) const { return a < b ? b : a; } };

}  // namespace kw

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, KW_LINE) {
    const int own = int(kw::lane());
    return kw::take_from(mask, value, (own & ~(width - 1)) | (source & (width - 1)), line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, KW_LINE) {
    const int own = int(kw::lane()), from = own - int(delta);
    return kw::take_from(mask, value, from < (own & ~(width - 1)) ? -1 : from, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, KW_LINE) {
    const int own = int(kw::lane()), from = own + int(delta);
    return kw::take_from(mask, value, from > (own | (width - 1)) ? -1 : from, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, KW_LINE) {
    const int own = int(kw::lane()), from = own ^ lanes;
    return kw::take_from(mask, value, from > (own | (width - 1)) ? -1 : from, line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, KW_LINE) {
    unsigned votes;
    kw::rendezvous(mask, kw::ballot, {nullptr, &votes, 4, predicate != 0}, line);
    return votes;
}
inline int __any_sync(unsigned mask, int predicate, KW_LINE) {
    return __ballot_sync(mask, predicate, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, KW_LINE) {
    return __ballot_sync(mask, !predicate, line) == 0;
}
inline unsigned __activemask(KW_LINE) { return kw::converged(line); }

template <typename T> unsigned __match_any_sync(unsigned mask, T value, KW_LINE) {
    unsigned same;
    kw::rendezvous(mask, kw::match_any, {&value, &same, sizeof(T), 0}, line);
    return same;
}
template <typename T> unsigned __match_all_sync(unsigned mask, T value, int* is_all, KW_LINE) {
    const unsigned same = __match_any_sync(mask, value, line);
    const unsigned voters = __ballot_sync(mask, 1, line);
    *is_all = same == voters;
    return *is_all ? mask : 0;
}

template <typename T> T __reduce_add_sync(unsigned mask, T value, KW_LINE) {
    return kw::reduced<kw::Sum>(mask, value, line);
}
template <typename T> T __reduce_min_sync(unsigned mask, T value, KW_LINE) {
    return kw::reduced<kw::Least>(mask, value, line);
}
template <typename T> T __reduce_max_sync(unsigned mask, T value, KW_LINE) {
    return kw::reduced<kw::Greatest>(mask, value, line);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, KW_LINE) {
    return kw::reduced<kw::And>(mask, value, line);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, KW_LINE) {
    return kw::reduced<kw::Or>(mask, value, line);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, KW_LINE) {
    return kw::reduced<kw::Xor>(mask, value, line);
}
