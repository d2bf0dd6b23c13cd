// SPDX-License-Identifier: Apache-2.0
// The one gate from Expected to exceptions.
#pragma once

#include <utility>

#include "quern/error.hpp"
#include "quern/expected.hpp"

namespace quern::session {

/// Throws the exception for `diagnostics`: Error with the code of their first error, CompileError for all
/// that concern source.
[[noreturn]] void throw_diagnostics(Diagnostics diagnostics);

/// The ErrorCode of the first error's code.
ErrorCode error_code(const Diagnostics& diagnostics) noexcept;

template <class T>
T value_or_throw(Expected<T> expected) {
  if (!expected) throw_diagnostics(std::move(expected).errors());
  return *std::move(expected);
}

Diagnostic make_diagnostic(std::string code, std::string message, std::string hint);

}  // namespace quern::session
