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

/// Computes expressions outside functions, as of the moment that the file's names are looked at.
class Evaluator {
 public:
  Evaluator(ModuleFile& file, Bindings& bindings, TypeReader& type_reader, Decorators& decorators)
      : file_(file), bindings_(bindings), type_reader_(type_reader), decorators_(decorators) {}

  /// Unknown or a value of the host program if it is more than the language computes there.
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
  /// The same of the host's objects.
  Value attribute_of(const Value& base, std::string_view name);

  Value call(const Expr& expr);
  Value text_call(const Expr& expr);
  Value method(const Expr& expr, const Value& array);
  HostCall read_call(const Expr& expr);

  ModuleFile& file_;
  Bindings& bindings_;
  TypeReader& type_reader_;
  Decorators& decorators_;
  std::vector<std::pair<std::string_view, Value>> inner_names_;  ///< of comprehensions
};

/// "a.b.c" if the expression consists of names alone; otherwise empty.
std::string dotted_text(const Expr& expr);

}  // namespace quern::frontend
