// SPDX-License-Identifier: Apache-2.0
// Addresses as sums: compilers compute the address of each element of a[4 * i], a[4 * i + 1] by itself, as
// a + 4 * sext(i * 4 | 1), where all are a + 16 * i and a constant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/analysis/analysis.hpp"
#include "cpu/analysis/range.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

/// A value as the sum of products and a constant, as wide as the value. Factors of 32 bits in a sum of 64 are
/// sign-extended.
struct AddressForm {
  std::vector<std::pair<ir::Value, std::int64_t>>
      terms;  ///< ascending values, and what they are multiplied by
  std::int64_t offset = 0;
};

class AddressForms {
 public:
  /// `patterns` are asked for the bounds of special registers only, so that they may be optimistic.
  AddressForms(const ir::Function& function, const std::vector<analysis::LanePattern>& patterns)
      : function_(function), patterns_(patterns) {}

  AddressForm of(ir::Value value) { return of(value, 0); }

 private:
  AddressForm of(ir::Value value, unsigned depth);
  AddressForm find(ir::Value value, unsigned depth);
  AddressForm widened(ir::Value value, unsigned depth);
  std::optional<std::int64_t> constant(ir::Value value) const;
  unsigned low_zeros(ir::Value value, unsigned depth = 0) const;
  analysis::Range range_of(ir::Value value, unsigned depth = 0) const;

  const ir::Function& function_;
  const std::vector<analysis::LanePattern>& patterns_;
  std::map<ir::Value, AddressForm> known_;
  std::map<ir::Value, analysis::Range> ranges_;
};

}  // namespace quern::cpu::cuts
