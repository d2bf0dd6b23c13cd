// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for loops.
class LoopCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  void while_statement(const Stmt& node);
  void for_statement(const Stmt& node);
  Code range_code(const Expr& expr);

  /// The variable that a `break` sets to false, so that the loop's `else` does not run. Empty if there is
  /// none.
  std::string flag() const { return flags_.empty() ? std::string() : flags_.back(); }

 private:
  struct Items {
    Type type = nullptr;       ///< type of an item
    CppText length;            ///< the number of items
    Code code;                 ///< the item at the index, if it has no parts
    std::vector<Items> parts;  ///< the parts of an item of enumerate and zip
  };
  void for_range(const Stmt& node);
  /// The step of a range, which is known or a positive variable.
  struct Step {
    std::int64_t length = 1;       ///< 1 if `stride` is used
    const Expr* stride = nullptr;  ///< a step that is not known at compile time, but positive
  };
  bool plain_for(const Stmt& node, const Expr& call);
  std::optional<Step> step_of(const Stmt& node, const Expr& call) const;
  bool owns_variable(const Stmt& node);
  std::optional<CppType> counter_type(const Expr& call, std::uint32_t version, const Step& by) const;
  bool is_stable(const Stmt& node, const Expr& stop) const;
  void loop_body(const Stmt& node);
  void for_items(const Stmt& node);
  Items items_of(const Stmt& loop, const Expr& source, const std::string& index);
  Items plain_items(const Stmt& loop, const Expr& source, const std::string& index);
  Items zipped(std::vector<Items> parts);
  Code whole_item(const Items& items);
  void assign_item(const Expr& target, const Items& items);
  void loop_else(const Stmt& node, const std::string& flag);
  std::string loop_flag(const Stmt& node);

  std::vector<std::string> flags_;  // flags of the enclosing loops
};

}  // namespace quern::frontend
