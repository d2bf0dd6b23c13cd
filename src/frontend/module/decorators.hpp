// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/module/bindings.hpp"
#include "frontend/module/evaluate.hpp"
#include "frontend/module/signature.hpp"

namespace quern::frontend {

/// Finds the functions that a file marks for compilation: by decorators, calls of decorators, or
/// cuda.declare_device.
class Decorators {
 public:
  Decorators(ModuleFile& file, Doubts& doubts, Bindings& bindings, Evaluator& evaluator, TypeReader& types)
      : file_(file), doubts_(doubts), bindings_(bindings), evaluator_(evaluator), type_reader_(types) {}

  /// The role that the decorator at the token gives; nothing for other decorators, which may be any host
  /// code.
  std::optional<Role> role_at(std::size_t token);
  void read(Declaration& declaration);
  /// k = cuda.jit(f), k = cuda.jit("void(float32[:])")(f): creates a separate kernel with the body of the
  /// function.
  void read_application(std::string_view name, Binding& binding);
  /// cuda.declare_device('mul', 'float32(float32, float32)', link='mul.cu', abi='c'): declares a function of
  /// linked CUDA C++.
  Value declare_device(const Expr& call);

 private:
  template <class Read>
  Diagnostics reported_apart(const Read& read);
  void read_decorator(Declaration& declaration, const Expr& decorator);
  const Declaration* function_named(const Expr& expr) const;
  void read_option(Declaration& declaration, const Expr& keyword);
  void read_links(const Expr& expr, std::vector<std::string>& out);

  ModuleFile& file_;
  Doubts& doubts_;
  Bindings& bindings_;
  Evaluator& evaluator_;
  TypeReader& type_reader_;
};

}  // namespace quern::frontend
