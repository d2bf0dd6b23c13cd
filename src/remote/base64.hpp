// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::remote {

/// RFC 4648, section 4, with padding.
std::string to_base64(std::span<const std::byte> bytes);
/// Returns nothing if `text` is not exactly the output of to_base64() for some bytes.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace quern::remote
