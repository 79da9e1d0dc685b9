// SPDX-License-Identifier: Apache-2.0
// The same for the Python runner, which cannot handle a signal in the middle of anything itself.
#include "refused_call.hpp"

extern "C" [[gnu::visibility("default")]] int kw_tell_refused_calls() {
    return wire::tell_refused_calls() ? 0 : -1;
}
