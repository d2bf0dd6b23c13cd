// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/module/doubt.hpp"
#include "frontend/module/module_file.hpp"

namespace quern::frontend {

class Evaluator;

/// Reads types and signatures in Numba's syntax, and element types in NumPy's.
class TypeReader {
 public:
  TypeReader(ModuleFile& file, Doubts& doubts, Evaluator& evaluator)
      : file_(file), doubts_(doubts), evaluator_(evaluator) {}

  /// Returns the type of an expression such as float32[:, ::1]. Reports an expression that is no type.
  Type type_of(const Expr& expr);
  /// The same for an expression that is a subscript.
  Type array_type(const Expr& expr);
  /// Reads np.float32, float32, 'f4', int, a record type or a list of its fields. Null for other expressions.
  Type element_type(const Expr& expr);
  /// np.dtype([('x', np.float32), ('y', 'i4', (3,))], align=True)
  Value record_dtype(const Expr& fields, bool align);

  /// Reads a signature, a tuple of types or a call. Reports an invalid one.
  bool read_signature(const Expr& expr, SignatureTypes& out);
  /// The same for text that is not part of the file, such as --sig; `what` names it in messages.
  bool read_signature_text(std::string_view text, const std::string& what, Place place, SignatureTypes& out);
  /// Follows names to the signature: SIG = void(float32[:]), or a string.
  const Expr& signature_meant(const Expr& expr);
  /// The expression that the binding's line assigns to the name; null if there is none.
  const Expr* assigned_expr_of(const Binding& binding, std::string_view name);

 private:
  const Expr* assigned_expr(std::string_view name);
  Type record_type(const Expr& list, const Expr& size);
  Type called_type(const Expr& expr);
  std::optional<bool> read_only_of(const Expr& expr);

  ModuleFile& file_;
  Doubts& doubts_;
  Evaluator& evaluator_;
};

}  // namespace quern::frontend
