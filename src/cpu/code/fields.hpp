// SPDX-License-Identifier: Apache-2.0
// Fields in a row of bytes: numbers of fixed size, little-endian as this processor is; texts after their
// size. Only for the formats of this folder. Thread-compatible.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace quern::cpu {

class FieldWriter {
 public:
  template <class T>
    requires std::is_unsigned_v<T>
  void add(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add(bool) = delete;
  void add_flag(bool flag) { add(static_cast<std::uint8_t>(flag)); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    bytes_ += text;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// After the first field that is not there all others are zero or empty, and good() is false.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_unsigned_v<T>
  T number() {
    T value{};
    if (!has(sizeof value)) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    good_ = good_ && value <= 1;
    return value == 1;
  }
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (!has(size)) return {};
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  /// The number of rows that follow, each of at least `row_bytes`: never more than there are bytes for.
  std::uint64_t count(std::size_t row_bytes) {
    const auto value = number<std::uint64_t>();
    if (value > rest_.size() / row_bytes) good_ = false;
    return good_ ? value : 0;
  }
  void need(bool condition) noexcept { good_ = good_ && condition; }
  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return good_ && rest_.empty(); }

 private:
  bool has(std::uint64_t size) {
    good_ = good_ && size <= rest_.size();
    return good_;
  }
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace quern::cpu
