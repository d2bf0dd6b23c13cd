// SPDX-License-Identifier: Apache-2.0
// Facts about a kernel and the numbers in its machine code that outlive its IR: the compiler writes them, the
// device reads them. They keep the IR's namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::cpu::ir {

inline constexpr std::uint32_t kNone = 0xffffffffu;

enum class Space : std::uint8_t { generic, global, shared, local, constant, param };

/// fault: ends the launch with the ir::Trap that its argument is, as a trap does, but is no end of a block.
enum class HostCall : std::uint8_t { vprintf, assertfail, malloc, free, fault };
/// The faults a kernel can raise by itself; emitted code hands the number to the scheduler, which makes the
/// CUresult.
enum class Trap : std::uint8_t {
  trap,
  assert,
  stack_overflow,
  divergent_barrier,
  unreachable,
  no_such_barrier,  ///< a register names a barrier beyond 15
  barrier_of_part,  ///< or a number of threads that is no multiple of a warp's
};

/// A location in the author's source; line 0: not known. `ptx_line` is the line in the PTX text.
struct Location {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t ptx_line = 0;
  std::uint32_t inlined_at = kNone;
};

/// The location that `at`, one of `locations`, has for the author of the kernel: the innermost one, from
/// which its code was inlined, in the file of the kernel itself. Not a line of a header that it includes.
const Location& author_location(const std::vector<Location>& locations, const Location& at);

struct Parameter {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t align = 1;
};

}  // namespace quern::cpu::ir
