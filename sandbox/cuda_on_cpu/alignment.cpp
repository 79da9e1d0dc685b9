// SPDX-License-Identifier: Apache-2.0
// Every access of the candidate in the plain build is asked by the compiler whether it stands where
// its type may; one that does not comes here, in place of a sanitizer's library.
#include "block.h"

#include <cstring>

namespace {

// What the compiler lays out for each place (the ABI of libubsan).
struct Place {
    const char* file;
    unsigned line, column;
};
struct Type {
    unsigned short kind, facts;
    char name[1];
};
struct Mismatch {
    Place place;
    const Type* type;
    unsigned char log_alignment, access;
};

}  // namespace

extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(
    const Mismatch* found, const void* at) {
    // In our header stands an intrinsic such as __ldg, whose line there means nothing to the reader.
    const bool is_own = std::strstr(found->place.file, "candidate.cu") != nullptr;
    char where[40] = "in an intrinsic";
    if (is_own) std::snprintf(where, sizeof where, "at line %u", found->place.line);
    const auto& [thread, block] = std::pair(kw::here.thread, kw::here.block);
    kw::leave(kw::TRAP,
              "thread (%u, %u, %u) of block (%u, %u, %u) stopped %s: misaligned address %p for "
              "%.80s, which takes a multiple of %u",
              thread.x, thread.y, thread.z, block.x, block.y, block.z, where, at,
              found->type->name, 1u << found->log_alignment);
}
