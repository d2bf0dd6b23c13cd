// SPDX-License-Identifier: Apache-2.0
// Known low bits of integers: whether an address is a multiple of an access's size, from the way it is
// computed. The alignment of a kernel's parameters is known only at launch, so a residue may be relative to a
// parameter.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/analysis/analysis.hpp"

namespace quern::cpu::analysis {

/// No access needs a larger alignment: 256 bits are the most that one moves.
inline constexpr std::uint32_t kMaxModulus = 32;

/// By ir::Value, from how the values are computed alone: true in every lane at any time.
std::vector<Residue> find_residues(const ir::Module& module, const ir::Function& function,
                                   const Analysis& analysis);

}  // namespace quern::cpu::analysis
