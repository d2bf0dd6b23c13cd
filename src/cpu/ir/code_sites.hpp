// SPDX-License-Identifier: Apache-2.0
// Maps the machine code of a kernel to the instructions of the IR that it was made of.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/ir/ir.hpp"

namespace quern::cpu {

/// Machine code from `offset` on belongs to instruction `value` of function `function`, or to no instruction
/// if `value` is ir::kNone.
struct CodeSite {
  std::uint64_t offset = 0;  ///< from the start of the text
  std::uint32_t function = ir::kNone;
  ir::Value value = ir::kNone;
};

/// Facts about a kernel's machine code that the explanation of a fault needs.
struct CodeSites {
  /// the module that the code was made from; the locations of its instructions are KernelCode::locations
  ir::Module module;
  std::uint64_t digest = 0;     ///< KernelCode::digest of the code that `sites` is about
  std::vector<CodeSite> sites;  ///< in ascending order of offsets; each site ends where the next one begins
};

}  // namespace quern::cpu
