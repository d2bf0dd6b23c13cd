// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

/// The registers of a function while it is read. Those of a range (`%r<100>`) are created at their first use.
class RegisterTable {
 public:
  /// The declaration of a register: its number, and the index among its numbered names.
  using Order = std::pair<std::uint32_t, std::uint32_t>;

  RegisterTable(ParseContext& context, Function& function) : context_(context), function_(function) {}

  std::uint32_t next_declaration() noexcept { return next_declaration_++; }
  /// The new register's index; nothing, with an error, if there are too many.
  std::optional<std::uint32_t> add(std::string_view name, Type type, std::uint8_t vector, Order order);
  /// The meaning of a name: a register or a symbol.
  std::optional<Entity> find(const Token& name);
  /// Sorts from the order of first use to that of declaration, which does not depend on how registers were
  /// declared.
  void sort();

 private:
  ParseContext& context_;
  Function& function_;
  std::uint32_t next_declaration_ = 0;
  std::vector<Order> order_;  ///< beside Function::registers
};

}  // namespace quern::ptx
