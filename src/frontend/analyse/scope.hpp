// SPDX-License-Identifier: Apache-2.0
// The local variables of a function in SSA form: each assignment creates a version, and phis merge versions.
// Types are inferred for versions, as in Numba, so a name may change its type unless two paths with different
// types join.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "frontend/syntax/ast.hpp"

namespace quern::frontend {

inline constexpr std::uint32_t kNoVersion = 0xffffffffu;

inline constexpr std::uint32_t kNoStatement = 0xffffffffu;

/// The operand of a phi for one path.
struct Operand {
  std::uint32_t version = kNoVersion;
  /// The `if` or `while` whose condition must have `outcome` on this path (for a loop, at its first test).
  std::uint32_t decided_by = kNoStatement;
  bool outcome = false;
  auto operator<=>(const Operand&) const = default;
};

struct Version {
  enum class Kind : std::uint8_t { parameter, definition, phi, undefined };
  Kind kind = Kind::definition;
  std::uint32_t local = 0;
  Place place;                    ///< place of the assignment; for a phi, the statement at which paths join
  std::vector<Operand> operands;  ///< operands of a phi
  /// For the phi after a `while`: the phi of the loop's head, which has the same value.
  std::uint32_t head = kNoVersion;
  bool used = false;  ///< it is read, or an operand of a phi that is read
};

struct Local {
  std::string_view name;
  Place first;  ///< its first assignment
};

/// The facts about a function that all its specialisations share.
struct Scope {
  const Function* function = nullptr;
  std::vector<Local> locals;
  std::vector<Version> versions;
  std::vector<std::uint32_t> loads;    ///< by expr id: the version that a name reads
  std::vector<std::uint32_t> defines;  ///< by expr id: the version that an assignment target creates
  std::vector<bool> dead;              ///< by stmt id: unreachable
  /// By expr id of a name in the condition of a `while`: the version that the first test reads, if the loop
  /// changes the name.
  std::map<std::uint32_t, std::uint32_t> first_loads;
  /// By expr id of a call of a nested function: the versions of its captured variables.
  std::map<std::uint32_t, std::vector<std::uint32_t>> captured;
  std::vector<std::vector<std::uint32_t>>
      phis;               ///< by stmt id: phis of a loop's head and of the code after the statement
  bool falls_off = true;  ///< the end is reachable without `return`
  /// Names in rejected text. That text may bind them.
  std::set<std::string_view> skipped_names;
  std::set<std::uint32_t> refused;  ///< expr ids of values of unsupported kinds whose error was reported

  /// The captured variables that the call passes in addition to its arguments.
  const std::vector<std::uint32_t>& captures(const Expr& call) const {
    static const std::vector<std::uint32_t> kNone;
    const auto found = captured.find(call.id);
    return found == captured.end() ? kNone : found->second;
  }
  std::uint32_t load(const Expr& expr) const { return loads[expr.id]; }
  std::uint32_t defined(const Expr& expr) const { return defines[expr.id]; }
};

/// Builds the scope. Reports unsupported syntax, and names that are read before they are assigned.
Scope build_scope(const Function& function, Report& report);
/// The names that a function or its nested functions read without binding them.
std::vector<std::string_view> free_names(const Function& function);

}  // namespace quern::frontend
