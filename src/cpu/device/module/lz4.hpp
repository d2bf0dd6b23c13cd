// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace quern::cpu::device {

/// Decompresses an LZ4 block into `text`, whose size is that of the result. False if the block is damaged or
/// its result has another size. Source: LZ4 Block Format Description (lz4/doc/lz4_Block_format.md).
[[nodiscard]] bool decompress_lz4(std::string_view block, std::string& text);

}  // namespace quern::cpu::device
