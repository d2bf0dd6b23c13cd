// SPDX-License-Identifier: Apache-2.0
#include "cpu/abi/facts.hpp"

namespace quern::cpu::ir {

const Location& author_location(const std::vector<Location>& locations, const Location& at) {
  const auto next = [&](const Location& from) {
    return from.inlined_at < locations.size() ? &locations[from.inlined_at] : nullptr;
  };
  // inlined_at is the index of an earlier location (lower/translate/source_locations.cpp), so the chain ends.
  const Location* outermost = &at;
  while (const Location* outer = next(*outermost)) {
    if (outer->line == 0) break;
    outermost = outer;
  }
  const Location* place = &at;
  while (place->line == 0 || place->file != outermost->file) {
    const Location* outer = next(*place);
    if (outer == nullptr) break;
    place = outer;
  }
  return *place;
}

}  // namespace quern::cpu::ir
