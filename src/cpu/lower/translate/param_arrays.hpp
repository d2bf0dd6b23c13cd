// SPDX-License-Identifier: Apache-2.0
// .param arrays of calls, whose pieces are variables: reading, writing and passing them.
#pragma once

#include "cpu/lower/translate/operands.hpp"

namespace quern::cpu::lower {

class ParamArrays {
 public:
  explicit ParamArrays(Operands& translation) : t_(translation) {}

  /// The parameter array that a symbol of the current function names; null if it names another variable.
  ParamArray* find(const ptx::SymbolRef& symbol);
  /// The bytes [offset, offset + size of type), assembled from the pieces that hold them; bytes that were
  /// never written read as 0.
  ir::Value read(const ParamArray& array, std::uint32_t offset, ir::Type type);
  void write(ParamArray& array, std::uint32_t offset, ir::Value value);

  /// A .param array of the caller for the bytes that `use` describes.
  ParamArray make(const ParamUse& use);
  void store_argument(ParamArray& to, const ptx::Variable& formal, const ptx::Operand& actual);
  void fetch_result(const ParamArray& from, const ptx::Variable& formal, const ptx::Operand& destination);

 private:
  Operands& t_;
};

}  // namespace quern::cpu::lower
