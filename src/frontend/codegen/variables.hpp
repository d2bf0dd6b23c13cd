// SPDX-License-Identifier: Apache-2.0
// The C++ variables of a function: one for each name and type, declared in the innermost block that holds all
// its uses.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

inline constexpr std::uint32_t kNoVariable = 0xffffffffu;

struct Variable {
  std::uint32_t local = 0;
  Type type = nullptr;
  std::string name;
  bool narrow = false;  ///< an int64 whose values fit an int
  bool parameter = false;
  bool merged = false;               ///< merged into another variable of the same name and type
  const Storage* storage = nullptr;  ///< the variable is the array itself: __shared__ float tile[16][16]
  std::uint32_t definitions = 0;
  std::uint32_t versions = 0;
  /// number of definitions of other variables whose values are also assigned to this one
  std::uint32_t flows = 0;
  bool written_once() const { return versions == 1 && definitions + flows <= 1; }
  bool maybe_unset = false;  ///< some path reaches a use without an assignment
  // The block that declares the variable.
  std::uint32_t block = kNoVariable;  ///< 0 is the body of the function
  int index = 0;  ///< index of the statement in that block with the first use; -1: the loop's head
  bool declared = false;
};

/// A list of statements within the function.
struct Block {
  std::uint32_t parent = 0;
  int index = 0;  ///< index of the statement in the parent that contains it
  std::uint32_t depth = 0;
};

struct Variables {
  std::vector<Variable> all;
  std::vector<std::uint32_t> of_version;  ///< kNoVariable for versions that are never read
  /// by version: other variables to which its value is assigned
  std::vector<std::vector<std::uint32_t>> also;
  std::vector<Block> blocks;
  std::map<const std::vector<Stmt*>*, std::uint32_t> block_of;
  /// the variables that are declared at a place
  std::map<std::pair<std::uint32_t, int>, std::vector<std::uint32_t>> at_place;
};

Variables find_variables(const Specialisation& specialisation);

}  // namespace quern::frontend
