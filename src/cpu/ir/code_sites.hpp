// SPDX-License-Identifier: Apache-2.0
// Maps the machine code of a kernel to the instructions of the IR that it was made of.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/ir/ir.hpp"

namespace quern::cpu {

/// Machine code from `offset` on belongs to instruction `value` of function `function`; ir::kNone: to no
/// instruction.
struct CodeSite {
  std::uint64_t offset = 0;  ///< from the beginning of the text
  std::uint32_t function = ir::kNone;
  ir::Value value = ir::kNone;
};

/// Facts about a kernel's machine code that the explanation of a fault needs.
struct CodeSites {
  ir::Module module;  ///< that the code was made of; its instructions' locations are KernelCode::locations
  std::uint64_t digest = 0;     ///< KernelCode::digest of the code that `sites` is about
  std::vector<CodeSite> sites;  ///< by offset, ascending; each reaches to the next one's begin
};

}  // namespace quern::cpu
