// SPDX-License-Identifier: Apache-2.0
#include "abi/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "quern/element_type.hpp"

namespace quern::abi {
namespace {

std::string index_text(const std::uint32_t (&index)[3]) {
  return fmt::format("({}, {}, {})", index[0], index[1], index[2]);
}

std::string reason_of(const Failure& failure) {
  if (failure.axis < 0) return std::string(failure.text, strnlen(failure.text, sizeof failure.text));
  constexpr std::int32_t kMost = 8;
  const std::int32_t ndim = std::clamp(failure.ndim, 0, kMost);
  const std::int64_t extent = failure.axis < ndim ? failure.extents[failure.axis] : 0;
  return fmt::format("IndexError: index {} is out of bounds for axis {} with size {} (shape {})",
                     failure.index, failure.axis, extent,
                     shape_text(std::span(failure.extents, static_cast<std::size_t>(ndim))));
}

}  // namespace

std::string text_of(const Failure& failure, std::string_view kernel, std::string_view file) {
  return fmt::format("kernel {} failed in block {}, thread {}\n{}:{}: {}", kernel, index_text(failure.block),
                     index_text(failure.thread), file, failure.line, reason_of(failure));
}

}  // namespace quern::abi
