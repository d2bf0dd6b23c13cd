// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/module/bindings.hpp"
#include "frontend/values/array_values.hpp"

namespace quern::frontend {

class Decorators;
class TypeReader;

/// Computes expressions outside functions, at the current moment of the file.
class Evaluator {
 public:
  Evaluator(ModuleFile& file, Bindings& bindings, TypeReader& type_reader, Decorators& decorators)
      : file_(file), bindings_(bindings), type_reader_(type_reader), decorators_(decorators) {}

  /// Returns unknown or a value of the host program if the language does not compute the expression there.
  Value evaluate(const Expr& expr);

 private:
  Value binary(const Expr& expr);
  Value compare(const Expr& expr);
  Value choice(const Expr& expr);
  Value items(const Expr& expr);
  Value subscript(const Expr& expr);
  Value comprehension(const Expr& expr);
  Value slice_of(const Value& items, const Expr& slice);
  /// `base.name`
  Value attribute(const Expr& expr);
  /// The same for attributes of host objects.
  Value attribute_of(const Value& base, std::string_view name);

  Value call(const Expr& expr);
  Value text_call(const Expr& expr);
  Value method(const Expr& expr, const Value& array);
  HostCall read_call(const Expr& expr);

  ModuleFile& file_;
  Bindings& bindings_;
  TypeReader& type_reader_;
  Decorators& decorators_;
  std::vector<std::pair<std::string_view, Value>> inner_names_;  ///< names of comprehensions
};

/// Returns "a.b.c" if the expression consists of names only; otherwise empty.
std::string dotted_text(const Expr& expr);

}  // namespace quern::frontend
