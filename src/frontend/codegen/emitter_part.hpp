// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "frontend/analyse/program.hpp"
#include "frontend/codegen/variables.hpp"
#include "frontend/cpp/code.hpp"

namespace quern::frontend {

class Emitter;

/// Data that all functions of a file share.
struct Unit {
  const SourceText* source = nullptr;
  TypeTable* types = nullptr;
  Names* names = nullptr;
  std::map<const Specialisation*, std::string> function_names;
  std::map<std::string, CppText, std::less<>> constants;  ///< declarations, by declared name
  std::map<std::string, CppText, std::less<>> linked;     ///< prototypes of functions of linked code
  std::set<std::string, std::less<>> links;               ///< the files of linked code
  bool debug = false;                                     ///< indices, divisors and assertions report errors
};

/// State that the emitter shares with its collaborators, which are members of the emitter.
class EmitterPart {
 public:
  EmitterPart(Emitter& emitter, Unit& unit, const Specialisation& specialisation, Variables& variables)
      : emitter_(emitter),
        unit_(unit),
        specialisation_(specialisation),
        scope_(*specialisation.scope),
        variables_(variables) {}
  EmitterPart(const EmitterPart&) = delete;
  EmitterPart& operator=(const EmitterPart&) = delete;

 protected:
  Emitter& emitter_;
  Unit& unit_;
  const Specialisation& specialisation_;
  const Scope& scope_;
  Variables& variables_;
};

}  // namespace quern::frontend
