// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/helpers/helpers.hpp"

#include <vector>

#include "cpu/emit/helpers/helper_code.hpp"

namespace quern::cpu::emit {

std::span<const Helper> helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> made;
    for (const auto part : {memory_helpers(), atomic_helpers(), arithmetic_helpers(), warp_helpers(),
                            system_helpers(), dispatch_helpers()})
      made.insert(made.end(), part.begin(), part.end());
    return made;
  }();
  return all;
}

}  // namespace quern::cpu::emit
