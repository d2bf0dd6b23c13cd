// SPDX-License-Identifier: Apache-2.0
// The values that integers have in each thread of a block, where they follow from the thread's index alone.
// Pure; no LLVM.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::cuts {

class ThreadValues {
 public:
  ThreadValues(const ir::Function& function, const Specialisation& specialisation)
      : function_(function), specialisation_(specialisation) {}

  /// The bits by linear thread index; null if they are not known. Valid until the next call.
  const std::vector<std::uint64_t>* find(ir::Value value);

  /// True if both are the same value, or known and equal in each thread.
  bool are_equal(ir::Value a, ir::Value b);

 private:
  using Bits = std::vector<std::uint64_t>;

  Bits compute(ir::Value value);
  Bits compute_special(ir::Special which) const;

  const ir::Function& function_;
  const Specialisation& specialisation_;
  std::map<ir::Value, Bits> known_;  ///< empty: not known
};

}  // namespace quern::cpu::cuts
