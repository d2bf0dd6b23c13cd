// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/parse/context.hpp"

namespace quern::ptx {

/// The registers of a function while it is read. The registers of a range (`%r<100>`) are created at their
/// first use.
class RegisterTable {
 public:
  /// The declaration of a register: its sequence number, and the index in the range of names that it
  /// declares.
  using Order = std::pair<std::uint32_t, std::uint32_t>;

  RegisterTable(ParseContext& context, Function& function) : context_(context), function_(function) {}

  std::uint32_t next_declaration() noexcept { return next_declaration_++; }
  /// Returns the index of the new register. If there are too many, reports an error and returns nothing.
  std::optional<std::uint32_t> add(std::string_view name, Type type, std::uint8_t vector, Order order);
  /// Returns the register or symbol that a name refers to.
  std::optional<Entity> find(const Token& name);
  /// Changes the order of first use into the order of declaration, so that the order does not depend on the
  /// form in which registers were declared.
  void sort();

 private:
  ParseContext& context_;
  Function& function_;
  std::uint32_t next_declaration_ = 0;
  std::vector<Order> order_;  ///< parallel to Function::registers
};

}  // namespace quern::ptx
