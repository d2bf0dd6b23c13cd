// SPDX-License-Identifier: Apache-2.0
#include "session/gate.hpp"

#include <string_view>

namespace quern::session {
namespace {

struct Row {
  std::string_view code;
  ErrorCode error;
};
// Every code that is not about source; the rest is ErrorCode::compile.
constexpr Row kRows[] = {
    {"io", ErrorCode::io},
    {"cache-io", ErrorCode::io},
    {"cache-unsafe", ErrorCode::io},
    {"file-missing", ErrorCode::not_found},
    {"bundle", ErrorCode::io},
    {"key-file", ErrorCode::io},
    {"usage", ErrorCode::usage},
    {"bind", ErrorCode::usage},
    {"file-kind", ErrorCode::unsupported},
    {"unsupported", ErrorCode::unsupported},
    {"device-name", ErrorCode::usage},
    {"device-missing", ErrorCode::not_found},
    {"driver-is-quern", ErrorCode::not_found},
    {"driver-incomplete", ErrorCode::not_found},
    {"unknown-kernel", ErrorCode::not_found},
    {"kernel-choice", ErrorCode::usage},
    {"library-not-loaded", ErrorCode::not_found},
    {"too-many-files", ErrorCode::io},
    {"plugin-not-found", ErrorCode::not_found},
    {"plugin-mismatch", ErrorCode::not_found},
    {"nvrtc-missing", ErrorCode::not_found},
    {"nvrtc-unusable", ErrorCode::not_found},
    {"nvrtc-option", ErrorCode::usage},
    {"stage-missing", ErrorCode::usage},
    {"saved-damaged", ErrorCode::io},
    {"saved-version", ErrorCode::unsupported},
    {"saved-target", ErrorCode::unsupported},
    {"not-saved", ErrorCode::not_found},
    {"process-exit", ErrorCode::usage},
    {"process-forked", ErrorCode::driver},
    {"cancelled", ErrorCode::cancelled},
};

}  // namespace

ErrorCode error_code(const Diagnostics& diagnostics) noexcept {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity != Severity::error) continue;
    for (const Row& row : kRows)
      if (row.code == diagnostic.code) return row.error;
    return ErrorCode::compile;
  }
  return ErrorCode::compile;
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
