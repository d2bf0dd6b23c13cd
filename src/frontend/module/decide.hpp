// SPDX-License-Identifier: Apache-2.0
// Evaluates conditions at the file's level whose outcome is known without running the file.
#pragma once

#include <optional>
#include <string>

#include "frontend/module/evaluate.hpp"

namespace quern::frontend {

/// Evaluates expressions at the current moment of the file. Reports nothing.
class Decision {
 public:
  Decision(ModuleFile& file, Evaluator& evaluator, Bindings& bindings)
      : file_(file), evaluator_(evaluator), bindings_(bindings) {}
  /// Says whether the expression is true; nullopt if that is not known.
  std::optional<bool> truth_of(std::size_t at, std::size_t end);
  /// True if the iterable of a loop has any items; unknown if that is not known.
  std::optional<bool> any_of(std::size_t at, std::size_t end);
  /// True if the expression can be computed here, so that it raises no exception.
  bool is_value(std::size_t at, std::size_t end);
  /// Whether `from module import name` succeeds, for the path "module.name".
  bool imports(const std::string& path);

 private:
  template <class Read>
  auto quietly(const Read& read);
  const Expr* parse(std::size_t at, std::size_t end);
  std::optional<bool> truth(const Expr& expr);

  ModuleFile& file_;
  Evaluator& evaluator_;
  Bindings& bindings_;
};

/// The truth value of a value.
std::optional<bool> truth_of(const Value& value);
/// Compares strings, versions and tuples; unknown for other values.
Value compare_texts(Tok op, const Value& left, const Value& right);
/// Reads a version such as "0.61.2", for Version of packaging and other modules. Unknown for malformed text.
Value version_of(std::string_view text);
/// True if calling this returns the version that a string contains.
bool makes_version(std::string_view path);
/// Known attributes of modules that only host code uses: numba.__version__, typing.TYPE_CHECKING.
std::optional<Value> known_attribute(std::string_view path);

}  // namespace quern::frontend
