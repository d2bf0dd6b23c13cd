// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/stack_switch.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cpu/engine/valgrind.hpp"

#if !defined(__x86_64__)
#error "the CPU device runs on x86-64"
#endif

// System V ABI: rbx, rbp, r12-r15, the control bits of mxcsr and the x87 control word are callee-saved. The
// host may have set the last two to any value. A run begins with their defaults (nearest, denormals kept, no
// traps) and a clear direction flag. If the restored state traps x87 exceptions, exceptions that a run raised
// are cleared first: otherwise the next x87 instruction would trap.
asm(R"(
.section .rodata
.p2align 2
quern_cpu_default_mxcsr:
  .long 0x1f80
quern_cpu_default_control_word:
  .short 0x37f
.text
.p2align 4
.hidden quern_cpu_run_on_stack
.globl quern_cpu_run_on_stack
.type quern_cpu_run_on_stack, @function
quern_cpu_run_on_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rdi, %rbx
  movq %rsi, %rsp
  movq %rcx, %rdi
  ldmxcsr quern_cpu_default_mxcsr(%rip)
  fldcw quern_cpu_default_control_word(%rip)
  cld
  call *%rdx
  movq (%rbx), %rsp
  movl $1, %eax
1:
  ldmxcsr (%rsp)
  movzwl 4(%rsp), %ecx
  notl %ecx
  testl $0x3f, %ecx
  jz 2f
  fnclex
2:
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size quern_cpu_run_on_stack, .-quern_cpu_run_on_stack

.p2align 4
.hidden quern_cpu_run_here
.globl quern_cpu_run_here
.type quern_cpu_run_here, @function
quern_cpu_run_here:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rdx, %rdi
  call *%rsi
  movl $1, %eax
  jmp 1b
.size quern_cpu_run_here, .-quern_cpu_run_here

.p2align 4
.hidden quern_cpu_leave_stack
.globl quern_cpu_leave_stack
.type quern_cpu_leave_stack, @function
quern_cpu_leave_stack:
  cld
  cmpb $0, quern_cpu_has_avx(%rip)
  je 3f
  vzeroupper
3:
  movq (%rdi), %rsp
  xorl %eax, %eax
  jmp 1b
.size quern_cpu_leave_stack, .-quern_cpu_leave_stack

.p2align 4
.hidden quern_cpu_suspend_stack
.globl quern_cpu_suspend_stack
.type quern_cpu_suspend_stack, @function
quern_cpu_suspend_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rsi)
  movq (%rdi), %rsp
  movl $2, %eax
  jmp 1b
.size quern_cpu_suspend_stack, .-quern_cpu_suspend_stack

.p2align 4
.hidden quern_cpu_resume_stack
.globl quern_cpu_resume_stack
.type quern_cpu_resume_stack, @function
quern_cpu_resume_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  jmp 1b
.size quern_cpu_resume_stack, .-quern_cpu_resume_stack
)");

// If a fault ends code, the upper halves of vector registers are in use, which would slow down SSE code of
// the host. So they are cleared.
extern "C" __attribute__((visibility("hidden"))) const bool quern_cpu_has_avx;
const bool quern_cpu_has_avx = __builtin_cpu_supports("avx") != 0;

namespace quern::cpu::engine {

GuardedStack::GuardedStack(std::byte* base, std::size_t stack_bytes)
    : stack_bytes_(stack_bytes),
      memory_(base, [stack_bytes](std::byte* start) { ::munmap(start, kGuardBytes + stack_bytes); }),
      note_(std::make_shared<const ValgrindStack>(base + kGuardBytes, stack_bytes)) {}

Expected<GuardedStack> GuardedStack::make(std::size_t most_bytes) {
  for (const std::size_t stack_bytes : kStackBytes) {
    if (stack_bytes > most_bytes) continue;
    void* base = ::mmap(nullptr, kGuardBytes + stack_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    GuardedStack made(static_cast<std::byte*>(base), stack_bytes);
    if (::mprotect(made.memory_.get() + kGuardBytes, stack_bytes, PROT_READ | PROT_WRITE) == 0) return made;
  }
  Diagnostic diagnostic;
  diagnostic.code = "address-space";
  diagnostic.message = std::string("cannot map a worker's stack: ") + std::strerror(errno);
  diagnostic.hint = "raise `ulimit -v`, or lower QUERN_CPU_WORKERS";
  return diagnostic;
}

bool GuardedStack::overflowed_at(const void* address) const noexcept {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(memory_.get()) <
         kGuardBytes;
}

}  // namespace quern::cpu::engine
