// SPDX-License-Identifier: Apache-2.0
// printf for kernels. Source: NVIDIA, "CUDA C++ Programming Guide", section "Formatted Output".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace quern::cpu::engine {

/// Reads device memory for printf. The functions return nothing if the kernel may not read at the address.
struct DeviceReader {
  /// Reads `size` bytes (at most 8) at `address`, zero-extended.
  std::function<std::optional<std::uint64_t>(std::uint64_t address, std::uint32_t size)> number;
  /// Reads the NUL-terminated text at `address`.
  std::function<std::optional<std::string>(std::uint64_t address)> text;
};

struct Formatted {
  std::string text;
  std::uint32_t argument_count = 0;
};

/// Formats like the host's printf: flags `#- +0`, width, precision (both also `*`), sizes h l ll, conversions
/// diouxXpeEfFgGaAcs%. `arguments` is the address of the packed arguments, each at its natural alignment
/// after C's promotions. An unknown conversion is printed literally. Returns nothing if an address could not
/// be read.
std::optional<Formatted> format_printf(std::string_view format, std::uint64_t arguments,
                                       const DeviceReader& reader);

}  // namespace quern::cpu::engine
