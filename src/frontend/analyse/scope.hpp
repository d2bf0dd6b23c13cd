// SPDX-License-Identifier: Apache-2.0
// The local variables of a function in SSA form: each assignment makes a version, versions meet in phis.
// Types are inferred for versions, as Numba does, so that a name may change its type if no path joins the
// two.
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
  /// The `if` or `while` whose condition must have `outcome` for this path; for a loop, at its first test.
  std::uint32_t decided_by = kNoStatement;
  bool outcome = false;
  auto operator<=>(const Operand&) const = default;
};

struct Version {
  enum class Kind : std::uint8_t { parameter, definition, phi, undefined };
  Kind kind = Kind::definition;
  std::uint32_t local = 0;
  Place place;                    ///< of the assignment; of a phi, the statement where paths meet
  std::vector<Operand> operands;  ///< of a phi
  /// For the phi behind a `while`: the phi of the loop's head, which has the same value.
  std::uint32_t head = kNoVersion;
  bool used = false;  ///< read, or part of a phi that is
};

struct Local {
  std::string_view name;
  Place first;  ///< its first assignment
};

/// The part of a function that is the same for all its specialisations.
struct Scope {
  const Function* function = nullptr;
  std::vector<Local> locals;
  std::vector<Version> versions;
  std::vector<std::uint32_t> loads;    ///< by expr id: the version that a name reads
  std::vector<std::uint32_t> defines;  ///< by expr id: the version that a target makes
  std::vector<bool> dead;              ///< by stmt id: never reached
  /// By expr id of a name in a `while`'s condition: the version that the first test reads, if the loop
  /// changes it.
  std::map<std::uint32_t, std::uint32_t> first_loads;
  /// By expr id of a call of a nested function: the versions of its captured variables.
  std::map<std::uint32_t, std::vector<std::uint32_t>> captured;
  std::vector<std::vector<std::uint32_t>>
      phis;               ///< by stmt id: of a loop's head and of what follows the statement
  bool falls_off = true;  ///< the end can be reached without `return`
  /// Names in rejected text, which may be bound there.
  std::set<std::string_view> skipped_names;
  std::set<std::uint32_t> refused;  ///< expr ids of values that were refused, of kinds that are not

  /// The values that the call passes besides its arguments.
  const std::vector<std::uint32_t>& captures(const Expr& call) const {
    static const std::vector<std::uint32_t> kNone;
    const auto found = captured.find(call.id);
    return found == captured.end() ? kNone : found->second;
  }
  std::uint32_t load(const Expr& expr) const { return loads[expr.id]; }
  std::uint32_t defined(const Expr& expr) const { return defines[expr.id]; }
};

/// Builds the scope; reports unsupported syntax, and names that are read before they are assigned.
Scope build_scope(const Function& function, Report& report);
/// The names that a function, or a function inside it, reads without binding them.
std::vector<std::string_view> free_names(const Function& function);

}  // namespace quern::frontend
