// SPDX-License-Identifier: Apache-2.0
// The elementwise operations: each lane's result depends on that lane's operands only. Such an emitter is
// written once, and emits scalar or 32-lane code depending on its operands.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <span>

#include "cpu/emit/operations/context.hpp"

namespace quern::cpu::emit {

/// One elementwise operation. All operands are scalar, or all are <32 x T> (a uniform condition of a select
/// stays scalar).
struct Operands {
  Context& context;
  const ir::Inst& inst;
  llvm::IRBuilder<>& b;
  llvm::SmallVector<llvm::Value*, 4> args;
  llvm::Type* type;  ///< type of the result: scalar or <32 x T>

  llvm::Value* operator[](unsigned index) const { return args[index]; }
  bool is_vector() const { return type->isVectorTy(); }
  Isa isa() const { return context.specialisation().isa; }
  ir::Type type_of_arg(unsigned index) const { return context.function()[inst.args[index]].type; }
};

using Elementwise = llvm::Value* (*)(Operands&);
using Emitter = void (*)(Context&, ir::Value);
/// True if the attributes of an instruction are supported. Its operation has a row.
using Accepts = bool (*)(const ir::Inst&);

/// A row of the table in operations.cpp. Either `elementwise` or `emitter` is set.
struct Row {
  ir::Op op;
  Elementwise elementwise = nullptr;
  Emitter emitter = nullptr;
  Accepts accepts = nullptr;
};

// The families; each is in the file of that name.
std::span<const Row> value_rows();
std::span<const Row> integer_rows();
std::span<const Row> bit_rows();
std::span<const Row> compare_rows();
std::span<const Row> floating_rows();
std::span<const Row> convert_rows();
std::span<const Row> approx_rows();
std::span<const Row> load_rows();
std::span<const Row> store_rows();
std::span<const Row> atomic_rows();
std::span<const Row> warp_rows();
std::span<const Row> system_rows();

/// A type with `element` as element and as many lanes as `shape`; `element` itself if `shape` is a scalar.
inline llvm::Type* with_element(llvm::Type* shape, llvm::Type* element) {
  return shape->getWithNewType(element);
}
/// The integer type with the same width and lanes.
llvm::Type* as_integer(llvm::Type* type);
/// An integer constant in every lane of `type`.
llvm::Constant* bits(llvm::Type* type, std::uint64_t value);
/// A constant of an IR type, integer or floating-point, with these bits.
llvm::Constant* constant_of(Context& context, ir::Type type, std::uint64_t bits);
inline unsigned width_of(llvm::Type* type) { return type->getScalarSizeInBits(); }

}  // namespace quern::cpu::emit
