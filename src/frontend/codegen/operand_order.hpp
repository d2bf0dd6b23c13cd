// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// Stores operands in variables if C++ could evaluate them in another order than Python.
class OperandOrder : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  /// The number of operands in variables; release() removes those after a mark.
  std::size_t mark() const { return temporaries_.size(); }
  void release(std::size_t mark) {
    temporaries_.erase(temporaries_.begin() + static_cast<std::ptrdiff_t>(mark), temporaries_.end());
  }
  /// Stores those operands in variables that C++ might evaluate too late.
  void hold_operands(const Expr& expr);
  void hold(const Expr& expr);
  void hold_effects(const Expr& call);
  Code held(Code code, Type type);
  Code once(const Expr& expr);
  Code isolated(const Expr& expr);
  const Code* held_code(const Expr& expr) const;
  bool is_kept(const Expr& expr) const;
  void discard(const Expr& expr);

 private:
  struct Temporary {
    const Expr* expr;
    Code code;
  };
  void hold_in_order(const std::vector<const Expr*>& operands);
  bool is_statement(const Expr& expr) const;

  std::vector<Temporary> temporaries_;  // operands that are stored in variables
};

}  // namespace quern::frontend
