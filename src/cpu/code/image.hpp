// SPDX-License-Identifier: Apache-2.0
// Machine code of a kernel as data that can be stored. The code is position-independent and linked, except
// for the helpers that it calls. Immutable after construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/facts.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// A symbol of the module that a kernel's code reads through LaunchState::symbols.
struct SymbolUse {
  std::string name;
  ir::Space space = ir::Space::global;
  std::uint64_t shared_offset = 0;
  friend bool operator==(const SymbolUse&, const SymbolUse&) = default;
};

/// Local memory of a thread.
struct LocalNeeds {
  std::uint64_t bytes = 0;
  std::uint64_t activation_bytes = 0;  ///< of these, the last part is ir::Function::stack_bytes
  bool calls = false;  ///< called functions use local memory after it, as long as there is space
  friend bool operator==(const LocalNeeds&, const LocalNeeds&) = default;
};

/// The facts that the device needs to run a kernel's code and to report its faults.
struct CodeFacts {
  std::uint64_t frame_bytes = 0;  ///< bytes of a warp's frame across barriers (0: it has none)
  bool waits = false;             ///< a block may wait for others (WorkerState::team, quern_cpu_yield)
  /// the code has functions that may call themselves: the worker's stack may overflow
  bool calls = false;
  /// Bit i: the 8 bytes of parameters at 8 * i are the address of an array that the kernel only writes, with
  /// stores that bypass the caches if LaunchState::streams has the bit, too.
  std::uint64_t streamed = 0;
  ir::AtomicUse atomics = ir::AtomicUse::none;
  LocalNeeds local;
  std::vector<SymbolUse> symbols;       ///< in the order of LaunchState::symbols
  std::vector<ir::Location> locations;  ///< for WorkerState::fault_location
  std::uint64_t digest = 0;             ///< digest of the machine code before linking
};

/// The bytes of an image: code, then stubs that jump to helpers, then constants. After loading, a table with
/// the address of each helper follows; stubs and code read it relative to their own address.
struct LinkedCode {
  std::string bytes;             ///< a multiple of kImageAlignment
  std::uint64_t text_bytes = 0;  ///< code and stubs, from the start
  std::uint64_t entry = 0;       ///< offset of the kernel's function
  std::vector<std::string> helpers;
  /// Offsets in `bytes` of constants that are addresses in the image, 8 bytes each.
  std::vector<std::uint64_t> addresses;
};
inline constexpr std::size_t kImageAlignment = 64;

struct CodeImage {
  CodeFacts facts;
  LinkedCode code;
};

/// Write and read an image in the format of docs/decisions/0025-shared-machine-code.md. Reading accepts any
/// bytes. Errors (code "code-image"): the bytes are not an image of this version, or fields contradict each
/// other. Reading does not check the machine code itself.
std::string write_image(const CodeImage& image);
Expected<CodeImage> read_image(std::string_view bytes);

}  // namespace quern::cpu
