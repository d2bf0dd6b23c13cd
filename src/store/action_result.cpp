// SPDX-License-Identifier: Apache-2.0
#include "store/action_result.hpp"

#include <algorithm>

namespace quern::store {
namespace {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes += static_cast<char>(value);
}

std::string field(unsigned number, Wire wire) { return varint(number << 3 | static_cast<unsigned>(wire)); }

std::string field(unsigned number, std::string_view content) {
  return field(number, Wire::bytes) + varint(content.size()).append(content);
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// The content of the first field of that number, which is made of bytes; other fields are skipped.
std::optional<std::string_view> find(std::string_view message, unsigned number) {
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return std::nullopt;
    std::optional<std::uint64_t> size;
    switch (static_cast<Wire>(*tag & 7)) {
      case Wire::varint:
        if (!take_varint(message)) return std::nullopt;
        continue;
      case Wire::fixed64:
        size = 8;
        break;
      case Wire::fixed32:
        size = 4;
        break;
      case Wire::bytes:
        size = take_varint(message);
        break;
    }
    if (!size || *size > message.size()) return std::nullopt;
    if (*tag == (number << 3 | static_cast<unsigned>(Wire::bytes))) return message.substr(0, *size);
    message.remove_prefix(*size);
  }
  return std::nullopt;
}

bool is_digest(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

std::string write_action_result(const base::Digest& digest, std::uint64_t size_bytes) {
  const std::string message = field(1, digest.hex()) + field(2, Wire::varint) + varint(size_bytes);
  return field(2, field(1, "quern") + field(2, message));
}

std::optional<std::string> read_action_result(std::string_view bytes) {
  const auto file = find(bytes, 2);
  const auto digest = file ? find(*file, 2) : std::nullopt;
  const auto hash = digest ? find(*digest, 1) : std::nullopt;
  if (!hash || !is_digest(*hash)) return std::nullopt;
  return std::string(*hash);
}

}  // namespace quern::store
