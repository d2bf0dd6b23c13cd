// SPDX-License-Identifier: Apache-2.0
// The section of the helpers whose faults belong to the kernel that called them.
#include <doctest/doctest.h>

#include <string>

#include "cpu/emit/helpers/helpers.hpp"

namespace quern::cpu::emit::testing {

TEST_CASE("the helpers that access memory lie in the text section of their own") {
  const TextRange text = helper_text();
  unsigned inside = 0;
  for (const Helper& helper : helpers()) {
    const auto* const at = static_cast<const std::byte*>(helper.address);
    const bool is_memory = helper.name.find("gather") != std::string_view::npos ||
                           helper.name.find("scatter") != std::string_view::npos ||
                           helper.name.find("store_row") != std::string_view::npos ||
                           helper.name == "quern_cpu_atomic";
    CHECK_MESSAGE((at >= text.begin && at < text.end) == is_memory, helper.name);
    inside += is_memory ? 1 : 0;
  }
  CHECK(inside == 15);
}

}  // namespace quern::cpu::emit::testing
