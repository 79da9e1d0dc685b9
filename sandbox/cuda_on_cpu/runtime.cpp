// SPDX-License-Identifier: Apache-2.0
// The runtime in one piece: it is compiled once on a machine for each variant.
#include "stacks.cpp"
#include "scheduler.cpp"
#include "shared.cpp"
#include "copies.cpp"
#include "launch.cpp"
#ifdef KW_ALIGNED
#include "alignment.cpp"
#endif
#ifdef KW_ACCESS
#include "requests.cpp"
#include "ledger.cpp"
#include "report.cpp"
#include "access.cpp"
#include "hooks.cpp"
#endif
