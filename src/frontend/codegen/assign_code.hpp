// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for assignments.
class AssignCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  void assign(const Stmt& node);
  void assign_to(const Expr& target, const Code& value, Type type);
  void assign_name(const Expr& target, const Code& value, Type type);
  void augmented(const Stmt& node);

 private:
  void assign_tuple(const Expr& target, const Expr& value);
  bool in_order(const Expr& target, const Expr& value) const;
  void assign_items(const Expr& target, const Expr& value);
  bool assign_divmod(const Expr& target, const Expr& value);
  void assign_array(const Expr& target, const Expr& value);
  bool is_unused(const Expr& target) const;
  void unpack(const Expr& target, const Code& value, Type type);
  void hold_place(const Expr& target, const Expr& value);
  bool same_in_cpp(const Stmt& node, const Code& assigned, const Code& operand, Type result) const;
};

}  // namespace quern::frontend
