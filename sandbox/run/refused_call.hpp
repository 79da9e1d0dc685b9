// SPDX-License-Identifier: Apache-2.0
// What becomes of a system call that is on no list: it is not made, and the process leaves and says which.
//
// The filter raises SIGSYS for it and lets nobody put another handler in this one's place. Who holds the signal back is
// killed by it. A candidate that writes over this code spoils its own status: the call has not been made in any case.
// sandbox/run/process.py reads the words and knows the status.
#pragma once

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace [[gnu::visibility("hidden")]] wire {

constexpr int REFUSED_CALL = 99;

inline void leave_for_refused_call(int, siginfo_t* refused, void*) {
    // A lock of the C library may be held, and AddressSanitizer looks at the stack before a call that does not return:
    // nothing of either is used here.
    char said[] = "refused system call            \n";
    unsigned number = unsigned(refused->si_syscall);
    char* digit = said + sizeof said - 2;
    do *--digit = char('0' + number % 10);
    while (number /= 10);
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0) {}
    syscall(SYS_exit_group, REFUSED_CALL);
}

// Before the filter, and so before any code of the candidate.
inline bool tell_refused_calls() {
    struct sigaction action {};
    action.sa_sigaction = leave_for_refused_call;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    return sigaction(SIGSYS, &action, nullptr) == 0;
}

}  // namespace wire
