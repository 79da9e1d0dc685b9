// SPDX-License-Identifier: Apache-2.0
// Stacks and the change from one to another.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime.h"

#ifdef KW_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

#ifdef KW_SANITIZED
constexpr std::size_t BYTES = 512 << 10;  // sanitized frames are larger
#else
constexpr std::size_t BYTES = 128 << 10;
#endif
constexpr std::size_t PAGE = 4096;
// Tops that all lay at the start of a page would share few sets of the cache.
constexpr std::size_t STAGGER = 320;

}  // namespace

#ifdef KW_X86_64
extern "C" void kw_change(void** from, void* to);
asm(R"(
.text
.globl kw_change
.hidden kw_change
.type kw_change, @function
kw_change:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size kw_change, .-kw_change
.section .note.GNU-stack,"",@progbits
.text
)");
#endif

namespace kw {

void prepare(Stack& stack, unsigned number, void (*run)()) {
    stack.bytes = BYTES;
    void* at = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (at == MAP_FAILED) leave(BROKEN_TABLE, "no memory for the stack of a thread");
    stack.bottom = static_cast<char*>(at);
    mprotect(stack.bottom, PAGE, PROT_NONE);
#ifdef KW_X86_64
    auto** top = reinterpret_cast<void**>(stack.bottom + BYTES - number * STAGGER % PAGE / 16 * 16);
    *--top = nullptr;  // where a caller's address would be: backtraces end here
    *--top = reinterpret_cast<void*>(run);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    stack.resume_at = top;
#else
    getcontext(&stack.context);
    stack.context.uc_stack.ss_sp = stack.bottom;
    stack.context.uc_stack.ss_size = BYTES - number * STAGGER % PAGE / 16 * 16;
    stack.context.uc_link = nullptr;
    makecontext(&stack.context, run, 0);
#endif
}

void release(Stack& stack) {
    if (stack.bottom) munmap(stack.bottom, stack.bytes);
    stack.bottom = nullptr;
}

void change(Stack& from, Stack& to) {
#ifdef KW_SANITIZED
    __sanitizer_start_switch_fiber(&from.sanitizer, to.bottom, to.bytes);
#endif
#ifdef KW_X86_64
    kw_change(&from.resume_at, to.resume_at);
#else
    swapcontext(&from.context, &to.context);
#endif
#ifdef KW_SANITIZED
    __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
}

void arrived_first([[maybe_unused]] Stack& caller) {
#ifdef KW_SANITIZED
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
    if (!caller.bottom) {  // the operating system's own, which nothing else here knows
        caller.bottom = const_cast<char*>(static_cast<const char*>(bottom));
        caller.bytes = bytes;
    }
#endif
}

}  // namespace kw
