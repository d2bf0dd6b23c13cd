// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostic_codes.hpp"

#include <algorithm>

namespace quern::base {
namespace {

struct CodeRow {
  std::string_view code;
  ErrorCode error;
};
constexpr CodeRow kCodes[] = {
#define QUERN_DIAGNOSTIC_CODE(code, error) {code, ErrorCode::error},
#include "base/diagnostic_codes.def"
};
static_assert(std::ranges::is_sorted(kCodes, {}, &CodeRow::code));

/// True for "cuda-" and a number, which is NVRTC's.
bool is_numbered(std::string_view code) noexcept {
  constexpr std::string_view kPrefix = "cuda-";
  return code.starts_with(kPrefix) && code.size() > kPrefix.size() &&
         code.find_first_not_of("0123456789", kPrefix.size()) == std::string_view::npos;
}

/// Returns null if there is none.
const CodeRow* row_of(std::string_view code) noexcept {
  const auto* const row = std::ranges::lower_bound(kCodes, code, {}, &CodeRow::code);
  return row != std::end(kCodes) && row->code == code ? row : nullptr;
}

}  // namespace

ErrorCode error_code_of(std::string_view code) noexcept {
  if (const CodeRow* const row = row_of(code)) return row->error;
  return is_numbered(code) ? ErrorCode::compile : ErrorCode::internal;
}

bool is_diagnostic_code(std::string_view code) noexcept {
  return row_of(code) != nullptr || is_numbered(code);
}

}  // namespace quern::base
