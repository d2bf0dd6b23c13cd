// SPDX-License-Identifier: Apache-2.0
// Computes known low bits of integers from the way they are computed: these tell whether an address is a
// multiple of the access's size. The alignment of a kernel's pointer parameters is known only at launch, so a
// residue may be relative to a parameter.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// No access needs a larger alignment: one access moves at most 256 bits.
inline constexpr std::uint32_t kMaxModulus = 32;

/// Returns the residues by ir::Value. They hold in every lane at any time.
std::vector<Residue> find_residues(const ir::Module& module, const ir::Function& function,
                                   const Analysis& analysis);

}  // namespace quern::cpu::analysis
