// SPDX-License-Identifier: Apache-2.0
#include "quern/argument.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "quern/launch_config.hpp"

namespace quern {

Argument Argument::scalar(Dtype dtype, std::span<const std::byte> bytes) {
  if (bytes.size() != quern::size_bytes(dtype))
    throw Error(ErrorCode::usage,
                fmt::format("a scalar of {} has {} bytes, {} were given; give exactly those", name(dtype),
                            quern::size_bytes(dtype), bytes.size()));
  Argument argument;
  argument.kind_ = Kind::scalar;
  argument.dtype_ = dtype;
  argument.size_ = bytes.size();
  std::memcpy(argument.inline_, bytes.data(), bytes.size());
  return argument;
}

Argument Argument::value(std::span<const std::byte> bytes) {
  Argument argument;
  argument.set_bytes(bytes.data(), bytes.size());
  return argument;
}

void detail::throw_bad_extent(bool negative, std::uint64_t magnitude) {
  throw Error(ErrorCode::usage,
              fmt::format("a grid or block extent cannot be {}{}; give a whole number from 0 to {}",
                          negative ? "-" : "", magnitude, UINT32_MAX));
}

}  // namespace quern
