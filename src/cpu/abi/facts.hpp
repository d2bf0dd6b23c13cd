// SPDX-License-Identifier: Apache-2.0
// Facts about a kernel, and the numbers in its machine code, that are needed after its IR is gone. The
// compiler writes them; the device reads them. They are in the IR's namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::cpu::ir {

inline constexpr std::uint32_t kNone = 0xffffffffu;

enum class Space : std::uint8_t { generic, global, shared, local, constant, param };

/// fault: ends the launch with the ir::Trap in its argument, as a trap does, but does not end a block.
enum class HostCall : std::uint8_t { vprintf, assertfail, malloc, free, fault };
/// The faults that a kernel can raise. Emitted code passes the number to the scheduler, which maps it to a
/// CUresult.
enum class Trap : std::uint8_t {
  trap,
  assert,
  stack_overflow,
  divergent_barrier,
  unreachable,
  no_such_barrier,  ///< a register contains a barrier number above 15
  barrier_of_part,  ///< a register contains a thread count that is not a multiple of the warp size
};

/// A location in the author's source; line 0: not known. `ptx_line` is the line in the PTX text.
struct Location {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t ptx_line = 0;
  std::uint32_t inlined_at = kNone;
};

/// Returns the location to report to the author for `at`, one of `locations`. Follows inlined code outwards
/// to the innermost location in the kernel's own file, so it is no line of an included header.
const Location& author_location(const std::vector<Location>& locations, const Location& at);

/// The accesses of a kernel to global memory that are atomic operations at more than the scope of a block,
/// or stores that are volatile or ordered.
enum class AtomicUse : std::uint8_t {
  none,
  biased,  ///< such operations, and all ask for the owner of their region before (abi/bias.hpp)
  other,
};

struct Parameter {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t align = 1;
};

}  // namespace quern::cpu::ir
