// SPDX-License-Identifier: Apache-2.0
// Conditions of a file's level whose outcome is known without running it.
#pragma once

#include <optional>
#include <string>

#include "frontend/names.hpp"

namespace quern::frontend {

/// Looks at expressions as of the moment that Names looks at. It reports nothing.
class Decision {
 public:
  explicit Decision(Names& names) : names_(names) {}
  /// Is the expression true?
  std::optional<bool> truth_of(std::size_t at, std::size_t end);
  /// Has what a loop goes over any items?
  std::optional<bool> any_of(std::size_t at, std::size_t end);
  /// Is it a value that is computed here, so that it raises nothing?
  bool is_value(std::size_t at, std::size_t end);
  /// Does `from module import name` succeed, of "module.name"?
  bool imports(const std::string& path);

 private:
  template <class Read>
  auto quietly(const Read& read);
  const Expr* parse(std::size_t at, std::size_t end);
  std::optional<bool> truth(const Expr& expr);

  Names& names_;
};

/// The truth of a value as `if` takes it.
std::optional<bool> truth_of(const Value& value);
/// Comparisons of strings, versions and tuples; unknown for what else there is.
Value compare_texts(Tok op, const Value& left, const Value& right);
/// "0.61.2" of packaging's and other modules' Version; unknown for what is none.
Value version_of(std::string_view text);
/// Does calling this give the version that a string names?
bool makes_version(std::string_view path);
/// numba.__version__, typing.TYPE_CHECKING: what is known of modules besides what kernels use.
std::optional<Value> known_attribute(std::string_view path);

}  // namespace quern::frontend
