// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/printf_format.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace quern::cpu::engine {
namespace {

/// Larger widths and precisions are reduced to this: a kernel must not make the host allocate gigabytes.
constexpr int kMaxWidth = 4096;

/// A parsed conversion, such as `%-08.3lld`.
struct Conversion {
  std::string flags;
  std::optional<int> width;
  std::optional<int> precision;
  bool wide = false;  ///< l, ll, j, z, t: the argument has 8 bytes
  int half = 0;       ///< 1 for h, 2 for hh
  char letter = '\0';
};

class Formatter {
 public:
  Formatter(std::string_view format, std::uint64_t arguments, const DeviceReader& reader)
      : format_(format), next_argument_(arguments), reader_(reader) {}

  std::optional<Formatted> run() {
    while (at_ < format_.size() && readable_) {
      const std::size_t percent = std::min(format_.find('%', at_), format_.size());
      result_.text.append(format_.substr(at_, percent - at_));
      at_ = percent;
      if (at_ < format_.size()) convert_one();
    }
    if (!readable_) return std::nullopt;
    return std::move(result_);
  }

 private:
  void convert_one() {
    const std::size_t start = at_++;
    const Conversion conversion = parse();
    if (!readable_ || !print(conversion)) {
      at_ = std::min(at_, format_.size());
      result_.text.append(format_.substr(start, at_ - start));
    }
  }

  char peek() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  std::optional<int> number_or_star() {
    if (peek() == '*') {
      ++at_;
      return std::clamp(static_cast<int>(static_cast<std::int32_t>(argument(4))), -kMaxWidth, kMaxWidth);
    }
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) value = std::min(value * 10 + (peek() - '0'), kMaxWidth);
    return value;
  }

  Conversion parse() {
    Conversion conversion;
    for (; std::string_view("#- +0").find(peek()) != std::string_view::npos && peek() != '\0'; ++at_)
      conversion.flags += peek();
    conversion.width = number_or_star();
    if (conversion.width && *conversion.width < 0) {
      conversion.flags += '-';
      conversion.width = -*conversion.width;
    }
    if (peek() == '.') {
      ++at_;
      conversion.precision = number_or_star().value_or(0);
      if (*conversion.precision < 0) conversion.precision.reset();
    }
    for (; std::string_view("hljztL").find(peek()) != std::string_view::npos && peek() != '\0'; ++at_) {
      if (peek() == 'h')
        ++conversion.half;
      else
        conversion.wide = true;
    }
    conversion.letter = peek();
    if (at_ < format_.size()) ++at_;
    return conversion;
  }

  /// Returns the next packed argument; after a failed read, returns 0.
  std::uint64_t argument(std::uint32_t size) {
    next_argument_ = (next_argument_ + size - 1) / size * size;
    const std::optional<std::uint64_t> bits = reader_.number(next_argument_, size);
    next_argument_ += size;
    ++result_.argument_count;
    if (!bits) readable_ = false;
    return bits.value_or(0);
  }

  template <class T>
  void host_print(const Conversion& conversion, std::string_view size, T value) {
    std::string specification = "%" + conversion.flags;
    if (conversion.width) specification += std::to_string(*conversion.width);
    if (conversion.precision) specification += "." + std::to_string(*conversion.precision);
    specification += size;
    specification += conversion.letter;
    const int length = std::snprintf(nullptr, 0, specification.c_str(), value);
    if (length <= 0) return;
    const std::size_t before = result_.text.size();
    result_.text.resize(before + static_cast<std::size_t>(length) + 1);
    std::snprintf(result_.text.data() + before, static_cast<std::size_t>(length) + 1, specification.c_str(),
                  value);
    result_.text.pop_back();
  }

  void print_signed(const Conversion& conversion) {
    const std::uint64_t bits = argument(conversion.wide ? 8 : 4);
    long long value = static_cast<long long>(bits);
    if (!conversion.wide) value = static_cast<std::int32_t>(bits);
    if (conversion.half == 1) value = static_cast<std::int16_t>(bits);
    if (conversion.half >= 2) value = static_cast<std::int8_t>(bits);
    host_print(conversion, "ll", value);
  }

  void print_unsigned(const Conversion& conversion) {
    unsigned long long value = argument(conversion.wide ? 8 : 4);
    if (conversion.half == 1) value = static_cast<std::uint16_t>(value);
    if (conversion.half >= 2) value = static_cast<std::uint8_t>(value);
    host_print(conversion, "ll", value);
  }

  void print_text(const Conversion& conversion) {
    const std::uint64_t address = argument(8);
    if (!readable_) return;
    const std::optional<std::string> text =
        address == 0 ? std::optional<std::string>("(null)") : reader_.text(address);
    if (!text)
      readable_ = false;
    else
      host_print(conversion, "", text->c_str());
  }

  /// Returns false if it is not a valid conversion.
  bool print(const Conversion& conversion) {
    switch (conversion.letter) {
      case '%':
        result_.text += '%';
        return true;
      case 'd':
      case 'i':
        print_signed(conversion);
        return true;
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        print_unsigned(conversion);
        return true;
      case 'p':
        host_print(conversion, "", reinterpret_cast<void*>(argument(8)));
        return true;
      case 'c':
        host_print(conversion, "", static_cast<int>(argument(4) & 0xff));
        return true;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        host_print(conversion, "", std::bit_cast<double>(argument(8)));
        return true;
      case 's':
        print_text(conversion);
        return true;
      default:
        return false;
    }
  }

  std::string_view format_;
  std::uint64_t next_argument_;
  const DeviceReader& reader_;
  Formatted result_;
  std::size_t at_ = 0;
  bool readable_ = true;
};

}  // namespace

std::optional<Formatted> format_printf(std::string_view format, std::uint64_t arguments,
                                       const DeviceReader& reader) {
  return Formatter(format, arguments, reader).run();
}

}  // namespace quern::cpu::engine
