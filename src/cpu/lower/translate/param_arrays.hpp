// SPDX-License-Identifier: Apache-2.0
// Reads, writes and passes the .param arrays of calls. The pieces of an array are variables.
#pragma once

#include "cpu/lower/translate/operands.hpp"

namespace quern::cpu::lower {

/// Returns a parameter in .reg space as an array with one piece for each element of a vector.
std::vector<Piece> pieces_of_registers(const ptx::Variable& parameter);

class ParamArrays {
 public:
  explicit ParamArrays(Operands& translation) : t_(translation) {}

  /// Returns the parameter array that a symbol of the current function refers to, or null for another
  /// variable.
  ParamArray* find(const ptx::SymbolRef& symbol);
  /// Returns the bytes [offset, offset + size of type), combined from the pieces that hold them. Bytes that
  /// were never written read as 0.
  ir::Value read(const ParamArray& array, std::uint32_t offset, ir::Type type);
  void write(ParamArray& array, std::uint32_t offset, ir::Value value);

  /// Creates a .param array of the caller for the bytes that `use` describes.
  ParamArray make(const ParamUse& use);
  void store_argument(ParamArray& to, const ptx::Variable& formal, const ptx::Operand& actual);
  void fetch_result(const ParamArray& from, const ptx::Variable& formal, const ptx::Operand& destination);

 private:
  Operands& t_;
};

}  // namespace quern::cpu::lower
