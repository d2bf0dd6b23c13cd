// SPDX-License-Identifier: Apache-2.0
// Plain data as bytes, for files: little-endian numbers, and texts behind their length.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace quern::base {

/// Thread-compatible.
class ByteWriter {
 public:
  template <class T>
    requires std::is_unsigned_v<T>
  ByteWriter& number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xff);
    return *this;
  }
  ByteWriter& flag(bool value) { return number(static_cast<std::uint8_t>(value ? 1 : 0)); }
  ByteWriter& real(double value) { return number(std::bit_cast<std::uint64_t>(value)); }
  ByteWriter& text(std::string_view value) {
    number(static_cast<std::uint64_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  /// The number of elements of a list, which follow.
  ByteWriter& count(std::size_t value) { return number(static_cast<std::uint64_t>(value)); }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a ByteWriter wrote, from arbitrary bytes: behind the end, and for values that were never
/// written, it gives zeros and is not good() from then on. Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
    requires std::is_unsigned_v<T>
  T number() {
    if (rest_.size() < sizeof(T)) return fail<T>();
    T value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i)
      value = static_cast<T>(value |
                             static_cast<T>(static_cast<T>(static_cast<unsigned char>(rest_[i])) << (8 * i)));
    rest_.remove_prefix(sizeof value);
    return value;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    return value > 1 ? fail<bool>() : value == 1;
  }
  double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
  /// A view of the reader's bytes.
  std::string_view text() {
    const auto size = number<std::uint64_t>();
    if (size > rest_.size()) return fail<std::string_view>();
    const std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }
  std::string string() { return std::string(text()); }
  /// At most as many as fit into the rest, if each takes `least_bytes` there: memory for that many elements
  /// may be reserved.
  std::size_t count(std::size_t least_bytes) {
    const auto value = number<std::uint64_t>();
    return value > rest_.size() / least_bytes ? fail<std::size_t>() : value;
  }
  /// A value of an enum whose last enumerator is `last`.
  template <class E>
  E enumerator(E last) {
    const auto value = number<std::uint8_t>();
    return value > static_cast<std::uint8_t>(last) ? fail<E>() : static_cast<E>(value);
  }

  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return rest_.empty(); }

 private:
  template <class T>
  T fail() {
    good_ = false;
    rest_ = {};
    return T{};
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace quern::base
