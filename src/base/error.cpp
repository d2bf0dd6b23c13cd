// SPDX-License-Identifier: Apache-2.0
#include "quern/error.hpp"

#include "quern/attempt.hpp"

#include <utility>

namespace quern {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::compile:
      return "compile";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::driver:
      return "driver";
    case ErrorCode::out_of_memory:
      return "out_of_memory";
    case ErrorCode::device_fault:
      return "device_fault";
    case ErrorCode::io:
      return "io";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "internal";
}

Error::Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

Error::Error(ErrorCode code, const std::string& message, Diagnostics diagnostics)
    : std::runtime_error(message), code_(code), diagnostics_(std::move(diagnostics)) {}

Diagnostics diagnostics_of(const Error& error) {
  if (!error.diagnostics().empty()) return error.diagnostics();
  Diagnostic diagnostic;
  diagnostic.code = to_string(error.code());
  diagnostic.message = error.what();
  return {std::move(diagnostic)};
}

CompileError::CompileError(Diagnostics diagnostics)
    : Error(ErrorCode::compile, to_string(diagnostics), diagnostics) {}

}  // namespace quern
