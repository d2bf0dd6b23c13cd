// SPDX-License-Identifier: Apache-2.0
// CUDA C++ text together with the headers that its names need, so that the generated file can include them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace quern::frontend {

/// The headers that generated code includes: device_names.def.
enum class DeviceHeader : std::uint8_t {
#define QUERN_DEVICE_HEADER(header, file) header,
#include "frontend/cpp/device_names.def"
  count,
};

/// A set of headers.
class Headers {
 public:
  Headers() = default;
  Headers(DeviceHeader header) : bits_(std::uint64_t{1} << static_cast<unsigned>(header)) {}
  Headers& operator|=(Headers other) {
    bits_ |= other.bits_;
    return *this;
  }
  bool empty() const { return bits_ == 0; }
  /// "quern/cuda/view.cuh", in the order of the table.
  std::vector<std::string_view> files() const;

 private:
  static_assert(static_cast<unsigned>(DeviceHeader::count) <= 64);
  std::uint64_t bits_ = 0;
};

/// CUDA C++ text and the headers of its names. It does not convert to std::string, and fmt does not format
/// it, so that no piece loses its headers. Use cpp_text() and join() to combine pieces.
class CppText {
 public:
  CppText() = default;
  /// Text without names that need a header.
  CppText(std::string text) : text_(std::move(text)) {}
  CppText(std::string_view text) : text_(text) {}
  CppText(const char* text) : text_(text) {}
  CppText(std::string text, Headers headers) : text_(std::move(text)), headers_(headers) {}

  const std::string& str() const { return text_; }
  Headers headers() const { return headers_; }
  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }

  CppText& operator+=(const CppText& other) {
    text_ += other.text_;
    headers_ |= other.headers_;
    return *this;
  }
  friend CppText operator+(CppText a, const CppText& b) { return std::move(a += b); }
  friend bool operator==(const CppText& a, std::string_view b) { return a.text_ == b; }

 private:
  std::string text_;
  Headers headers_;
};

/// Returns the name with the header that declares it, if it needs one. Template arguments or a call may
/// follow the name.
CppText device_name(std::string_view name);

CppText join(const std::vector<CppText>& parts, std::string_view separator);

namespace detail {

// Not constexpr: a call in a constant expression is a compile-time error.
void pattern_holds_a_name_that_needs_a_header();

template <class A>
using Shown = std::conditional_t<std::is_same_v<A, CppText>, std::string_view, const A&>;

template <class A>
Shown<A> shown(const A& argument) {
  if constexpr (std::is_same_v<A, CppText>)
    return argument.str();
  else
    return argument;
}

template <class A>
Headers headers_of(const A& argument) {
  if constexpr (std::is_same_v<A, CppText>)
    return argument.headers();
  else
    return {};
}

template <class... A>
struct Pattern {
  template <std::size_t N>
  consteval Pattern(const char (&text)[N]) : format(text) {
    if (std::string_view(text).find("quern::") != std::string_view::npos)
      pattern_holds_a_name_that_needs_a_header();
  }
  fmt::format_string<Shown<A>...> format;
};

}  // namespace detail

/// fmt::format for CUDA C++: the result has the headers of all arguments. Pass names that need a header as
/// arguments, made by device_name().
template <class... A>
CppText cpp_text(detail::Pattern<std::type_identity_t<A>...> pattern, const A&... arguments) {
  Headers headers;
  ((headers |= detail::headers_of(arguments)), ...);
  return {fmt::vformat(fmt::string_view(pattern.format), fmt::make_format_args(detail::shown(arguments)...)),
          headers};
}

}  // namespace quern::frontend
