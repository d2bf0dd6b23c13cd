// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/lz4.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace quern::cpu::device {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view block) : rest_(block) {}
  bool empty() const noexcept { return rest_.empty(); }
  std::optional<std::uint8_t> byte() noexcept {
    if (rest_.empty()) return std::nullopt;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::optional<std::string_view> take(std::size_t count) noexcept {
    if (count > rest_.size()) return std::nullopt;
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  /// A length whose first four bits are `nibble`; 15 has more bytes, of which the last is not 255.
  std::optional<std::size_t> length(std::uint8_t nibble) noexcept {
    std::size_t sum = nibble;
    if (nibble != 15) return sum;
    for (;;) {
      const std::optional<std::uint8_t> more = byte();
      if (!more) return std::nullopt;
      sum += *more;
      if (*more != 255) return sum;
    }
  }

 private:
  std::string_view rest_;
};

}  // namespace

bool decompress_lz4(std::string_view block, std::string& text) {
  constexpr std::size_t kLeastMatch = 4;
  Reader reader(block);
  std::size_t at = 0;
  while (const std::optional<std::uint8_t> token = reader.byte()) {
    const std::optional<std::size_t> literal_bytes = reader.length(*token >> 4);
    const auto literals = literal_bytes ? reader.take(*literal_bytes) : std::nullopt;
    if (!literals || literals->size() > text.size() - at) return false;
    std::copy(literals->begin(), literals->end(), text.begin() + static_cast<std::ptrdiff_t>(at));
    at += literals->size();
    if (reader.empty()) break;  // the last sequence has literals only
    const std::optional<std::uint8_t> low = reader.byte(), high = reader.byte();
    if (!low || !high) return false;
    const std::size_t offset = *low | static_cast<std::size_t>(*high) << 8;
    const std::optional<std::size_t> match_bytes = reader.length(*token & 15);
    if (!match_bytes || offset == 0 || offset > at || *match_bytes + kLeastMatch > text.size() - at)
      return false;
    // Byte by byte: a match may overlap what it makes.
    for (std::size_t i = 0; i < *match_bytes + kLeastMatch; ++i, ++at) text[at] = text[at - offset];
  }
  return at == text.size();
}

}  // namespace quern::cpu::device
