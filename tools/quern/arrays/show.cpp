// SPDX-License-Identifier: Apache-2.0
#include "arrays/show.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "arrays/scalar.hpp"

namespace quern::cli {
namespace {

constexpr std::int64_t kAbridgeBeyond = 16;
constexpr int kPrecision = 8;  // NumPy's default

/// A floating-point value and the type in which its text must be shortest.
struct Real {
  double value = 0;
  Dtype dtype = Dtype::float64;
};

/// The shortest text that reads back as the same value of its type.
std::string shortest(const Real& real) {
  if (real.dtype == Dtype::float64) return fmt::format("{}", real.value);
  if (real.dtype == Dtype::float32) return fmt::format("{}", static_cast<float>(real.value));
  const auto bits = [&](double value) {
    return real.dtype == Dtype::float16 ? to_half(value) : to_bfloat16(value);
  };
  for (int digits = 1; digits < 9; ++digits) {
    std::string text = fmt::format("{:.{}g}", real.value, digits);
    if (bits(std::strtod(text.c_str(), nullptr)) == bits(real.value)) return text;
  }
  return fmt::format("{}", real.value);
}

/// The digits of the shortest text, without the point and the zeros around them, and the power of ten of the
/// first digit.
struct Decimal {
  std::string digits;
  int exponent = 0;
};

Decimal decimal(const Real& real) {
  const std::string text = shortest({std::fabs(real.value), real.dtype});
  Decimal result;
  const std::size_t e = text.find('e');
  const std::string mantissa = text.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  for (const char c : mantissa)
    if (c != '.') result.digits += c;
  result.exponent =
      static_cast<int>(point) - 1 + (e == std::string::npos ? 0 : std::atoi(text.c_str() + e + 1));
  const std::size_t zeros = std::min(result.digits.find_first_not_of('0'), result.digits.size() - 1);
  result.exponent -= static_cast<int>(zeros);
  result.digits.erase(0, zeros);
  while (result.digits.size() > 1 && result.digits.back() == '0') result.digits.pop_back();
  if (result.digits == "0") result.exponent = 0;
  return result;
}

std::string strip_zeros(std::string text) {
  while (text.ends_with('0')) text.pop_back();
  return text;
}

/// Formats as "-12." or "0.5": at most kPrecision digits after the point, and no zeros at the end.
std::string positional(const Real& real) {
  const Decimal parts = decimal(real);
  const int fraction = static_cast<int>(parts.digits.size()) - 1 - parts.exponent;
  if (fraction > kPrecision) return strip_zeros(fmt::format("{:.{}f}", real.value, kPrecision));
  return strip_zeros(fmt::format("{:#.{}f}", real.value, std::max(fraction, 1)));
}

/// Formats as "1.5e-10", with `fraction` digits after the point.
std::string scientific(const Real& real, int fraction) {
  return fmt::format("{:#.{}e}", real.value, fraction);
}

bool needs_exponent(const std::vector<Real>& values) {
  double largest = 0;
  double smallest = HUGE_VAL;
  for (const Real& real : values) {
    const double size = std::fabs(real.value);
    if (!std::isfinite(size) || size == 0) continue;
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  if (largest == 0) return false;
  return largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000;
}

std::string special(double value) { return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf"; }

/// Pads texts to equal width, with the points below each other.
std::vector<std::string> real_texts(const std::vector<Real>& values) {
  const bool exponent = needs_exponent(values);
  int fraction = 0;
  for (const Real& real : values)
    if (exponent && std::isfinite(real.value))
      fraction =
          std::max(fraction, std::min<int>(static_cast<int>(decimal(real).digits.size()) - 1, kPrecision));
  std::vector<std::string> texts;
  std::size_t left = 0;
  std::size_t right = 0;
  for (const Real& real : values) {
    texts.push_back(!std::isfinite(real.value) ? special(real.value)
                    : exponent                 ? scientific(real, fraction)
                                               : positional(real));
    if (!std::isfinite(real.value)) continue;
    const std::size_t point = texts.back().find('.');
    left = std::max(left, point);
    right = std::max(right, texts.back().size() - point);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (!std::isfinite(values[i].value)) continue;
    texts[i].insert(0, left - texts[i].find('.'), ' ');
    texts[i].resize(left + right, ' ');
  }
  const std::size_t width = left + right;
  for (std::string& text : texts)
    if (text.size() < width) text.insert(0, width - text.size(), ' ');
  const auto longest =
      std::max_element(texts.begin(), texts.end(), [](auto& a, auto& b) { return a.size() < b.size(); });
  const std::size_t all = longest != texts.end() ? longest->size() : 0;
  for (std::string& text : texts) text.insert(0, all - text.size(), ' ');
  return texts;
}

double real_at(Dtype dtype, const std::byte* bytes) {
  if (dtype == Dtype::float64) {
    double value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  if (dtype == Dtype::float32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  if (dtype == Dtype::bfloat16) return static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16));
  return static_cast<double>(std::bit_cast<_Float16>(bits));
}

bool is_real(const Element& element) {
  return element.dtype && *element.dtype >= Dtype::float16 && *element.dtype <= Dtype::float64;
}
bool is_complex(const Element& element) {
  return element.dtype && (*element.dtype == Dtype::complex64 || *element.dtype == Dtype::complex128);
}

std::vector<Real> reals(const Dtype dtype, const std::vector<const std::byte*>& places, std::size_t offset) {
  std::vector<Real> values;
  for (const std::byte* place : places) values.push_back({real_at(dtype, place + offset), dtype});
  return values;
}

std::vector<std::string> texts_of(const Element& element, const std::vector<const std::byte*>& places) {
  if (is_real(element)) return real_texts(reals(*element.dtype, places, 0));
  std::vector<std::string> texts;
  if (is_complex(element)) {
    const Dtype part = *element.dtype == Dtype::complex64 ? Dtype::float32 : Dtype::float64;
    texts = real_texts(reals(part, places, 0));
    const std::vector<std::string> imaginary = real_texts(reals(part, places, size_bytes(part)));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::string text = imaginary[i];
      text.erase(0, text.find_first_not_of(' '));
      const std::size_t end = text.find_last_not_of(' ') + 1;
      texts[i] += (text.front() == '-' ? "" : "+") + text.substr(0, end) + "j" + text.substr(end);
    }
    return texts;
  }
  std::size_t width = 0;
  for (const std::byte* place : places) {
    texts.push_back(format_element(element, place));
    width = std::max(width, texts.back().size());
  }
  for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  return texts;
}

/// Walks the shown elements twice: once to collect them, once to print their texts.
class Printer {
 public:
  Printer(const Array& array, std::size_t indent, std::int64_t edge)
      : array_(array), indent_(indent), edge_(edge) {}

  std::string print() {
    const std::byte* const base = array_.bytes->data() + array_.offset;
    if (array_.count() == 0) return "[]";
    collect(0, base);
    texts_ = texts_of(array_.element, places_);
    if (array_.shape.empty()) return texts_.front();
    write(0);
    return std::move(text_);
  }

 private:
  bool abridged(std::size_t axis) const {
    return array_.count() > kAbridgeBeyond && array_.shape[axis] > 2 * edge_;
  }

  template <class Visit>
  void for_shown(std::size_t axis, Visit visit) const {
    for (std::int64_t i = 0; i < array_.shape[axis]; ++i) {
      if (abridged(axis) && i == edge_) i = array_.shape[axis] - edge_;
      visit(i);
    }
  }

  void collect(std::size_t axis, const std::byte* base) {
    if (axis == array_.shape.size()) {
      places_.push_back(base);
      return;
    }
    for_shown(axis, [&](std::int64_t i) { collect(axis + 1, base + i * array_.strides[axis]); });
  }

  void write(std::size_t axis) {
    if (axis == array_.shape.size()) {
      text_ += texts_[next_++];
      return;
    }
    const bool inner = axis + 1 == array_.shape.size();
    const std::string between =
        inner ? " "
              : std::string(array_.shape.size() - axis - 1, '\n') + std::string(indent_ + axis + 1, ' ');
    text_ += '[';
    for_shown(axis, [&](std::int64_t i) {
      if (i > 0) text_ += between;
      if (abridged(axis) && i == array_.shape[axis] - edge_) text_ += "..." + between;
      write(axis + 1);
    });
    text_ += ']';
  }

  const Array& array_;
  const std::size_t indent_;
  const std::int64_t edge_;
  std::vector<const std::byte*> places_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
  std::string text_;
};

}  // namespace

std::string array_text(const Array& array, std::size_t indent, std::int64_t edge) {
  return Printer(array, indent, edge).print();
}

}  // namespace quern::cli
