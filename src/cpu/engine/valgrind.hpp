// SPDX-License-Identifier: Apache-2.0
// If the process runs under valgrind, announces memory that is used as a stack. Otherwise valgrind would warn
// at every switch, and treat the memory between two stacks as part of one. Without valgrind, this is a few
// instructions without effect. Source: valgrind.h, "Client Requests", for AMD64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::cpu::engine {

class ValgrindStack {
 public:
  ValgrindStack(const std::byte* base, std::size_t bytes) noexcept
      : id_(request(kRegister, reinterpret_cast<std::uintptr_t>(base),
                    reinterpret_cast<std::uintptr_t>(base) + bytes)) {}
  ~ValgrindStack() { request(kDeregister, id_, 0); }
  ValgrindStack(const ValgrindStack&) = delete;
  ValgrindStack& operator=(const ValgrindStack&) = delete;

 private:
  static constexpr std::uint64_t kRegister = 0x1501, kDeregister = 0x1502;

  static std::uint64_t request(std::uint64_t number, std::uint64_t first, std::uint64_t second) noexcept {
    volatile std::uint64_t arguments[6] = {number, first, second, 0, 0, 0};
    std::uint64_t answer = 0;
    asm volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                 : "=d"(answer)
                 : "a"(&arguments[0]), "0"(answer)
                 : "cc", "memory");
    return answer;
  }

  std::uint64_t id_;
};

}  // namespace quern::cpu::engine
