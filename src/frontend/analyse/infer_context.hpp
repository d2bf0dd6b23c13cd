// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

/// State that type inference and its collaborators share: the function whose types are inferred, and errors
/// about it. It refers to the program, which must outlive it.
class InferenceContext {
 protected:
  InferenceContext(Program& program, Specialisation& specialisation)
      : program_(program),
        specialisation_(specialisation),
        scope_(*specialisation.scope),
        types_(program.types()),
        report_(program.report()) {}
  InferenceContext(const InferenceContext&) = default;

  // Report errors: only in the last walk, and no consequences of other errors.
  template <class... Args>
  Type fail(Place place, std::string_view code, std::string hint, fmt::format_string<Args...> text,
            Args&&... args) {
    if (!reporting_) return nullptr;
    report_.error(place, code, fmt::format(text, std::forward<Args>(args)...), std::move(hint));
    return types_.error;
  }
  void note(Place place, std::string message) {
    if (reporting_) report_.note(place, std::move(message));
  }
  /// The type of an expression whose error was reported.
  Type refused() const { return reporting_ ? types_.error : nullptr; }
  /// Returns true if the expression fits; otherwise reports that `wanted` is required.
  bool wants(const Expr& expr, Type type, bool fits, std::string_view wanted);
  /// The expression as the author wrote it.
  std::string shown(const Expr& expr) const;

  Program& program_;
  Specialisation& specialisation_;
  const Scope& scope_;
  TypeTable& types_;
  Report& report_;
  bool reporting_ = false;
};

}  // namespace quern::frontend
