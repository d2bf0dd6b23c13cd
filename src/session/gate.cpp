// SPDX-License-Identifier: Apache-2.0
#include "session/gate.hpp"

#include <algorithm>
#include <string_view>

#include "base/diagnostic_codes.hpp"

namespace quern::session {

ErrorCode error_code(const Diagnostics& diagnostics) noexcept {
  const auto first = std::ranges::find(diagnostics, Severity::error, &Diagnostic::severity);
  return first == diagnostics.end() ? ErrorCode::internal : base::error_code_of(first->code);
}

void throw_diagnostics(Diagnostics diagnostics) {
  const ErrorCode code = error_code(diagnostics);
  if (code == ErrorCode::compile) throw CompileError(std::move(diagnostics));
  std::string text = to_string(diagnostics);
  constexpr std::string_view kPrefix = "error: ";
  if (text.starts_with(kPrefix)) text.erase(0, kPrefix.size());
  if (text.ends_with('\n')) text.pop_back();
  throw Error(code, text, std::move(diagnostics));
}

Diagnostic make_diagnostic(std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

}  // namespace quern::session
