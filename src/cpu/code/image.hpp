// SPDX-License-Identifier: Apache-2.0
// Machine code of a kernel as data that can be stored: position-independent, and linked but for the helpers
// that it calls. Immutable once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/facts.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// One module-level symbol that a kernel's code reads through LaunchState::symbols.
struct SymbolUse {
  std::string name;
  ir::Space space = ir::Space::global;
  std::uint64_t shared_offset = 0;
  friend bool operator==(const SymbolUse&, const SymbolUse&) = default;
};

/// Local memory of a thread.
struct LocalNeeds {
  std::uint64_t bytes = 0;
  std::uint64_t activation_bytes = 0;  ///< of these, at their end: ir::Function::stack_bytes
  bool calls = false;  ///< called functions have their parts behind it, as long as there is space
  friend bool operator==(const LocalNeeds&, const LocalNeeds&) = default;
};

/// The facts that the device needs to run a kernel's code and to report its faults.
struct CodeFacts {
  std::uint64_t frame_bytes = 0;  ///< a warp's frame across barriers (0: none)
  bool waits = false;             ///< a block may wait for others (WorkerState::team, quern_cpu_yield)
  bool calls = false;             ///< functions that may call themselves: a worker's stack may overflow
  LocalNeeds local;
  std::vector<SymbolUse> symbols;       ///< in the order of LaunchState::symbols
  std::vector<ir::Location> locations;  ///< for WorkerState::fault_location
  std::uint64_t digest = 0;             ///< of the machine code before it was linked
};

/// The bytes of an image: code, then stubs, which jump to helpers, then constants. Behind them, when loaded,
/// is a table with the address of each helper, which stubs and code read relative to themselves.
struct LinkedCode {
  std::string bytes;             ///< a multiple of kImageAlignment
  std::uint64_t text_bytes = 0;  ///< code and stubs, from the beginning on
  std::uint64_t entry = 0;       ///< of the kernel's function
  std::vector<std::string> helpers;
  /// Constants that are addresses in the image: where in `bytes` they are, 8 bytes each, as offsets.
  std::vector<std::uint64_t> addresses;
};
inline constexpr std::size_t kImageAlignment = 64;

struct CodeImage {
  CodeFacts facts;
  LinkedCode code;
};

/// The image in the format of docs/decisions/0025-shared-machine-code.md, and back. Reading accepts any
/// bytes; errors (code "code-image"): bytes that are no image of this version, or whose fields contradict
/// each other. The machine code itself is taken as it is.
std::string write_image(const CodeImage& image);
Expected<CodeImage> read_image(std::string_view bytes);

}  // namespace quern::cpu
