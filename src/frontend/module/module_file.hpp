// SPDX-License-Identifier: Apache-2.0
// The file that is translated: its text, its functions, and what its import binds. The classes that give
// meaning to names, values, types and decorators share it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/module/timeline.hpp"
#include "frontend/syntax/ast.hpp"
#include "frontend/syntax/parser.hpp"
#include "frontend/types/types.hpp"

namespace quern::frontend {

enum class Role : std::uint8_t { host, kernel, device };

/// void(float32[:], int32), as a decorator or the launch gives it.
struct SignatureTypes {
  Type result = nullptr;  ///< null where none was written
  std::vector<Type> parameters;
};

struct Options {
  bool fastmath = false;
  bool debug = false;
  bool lineinfo = false;
  bool force_inline = false;
  std::int64_t max_registers = 0;
  std::vector<std::int64_t> launch_bounds;
  std::vector<std::string> links;  ///< files of CUDA C++
};

/// A function of the file.
struct Declaration {
  std::string_view name;
  Place place;
  std::size_t token = 0;                ///< of its `def`
  std::vector<std::size_t> decorators;  ///< the tokens behind each '@'
  Role role = Role::host;
  std::vector<SignatureTypes> signatures;
  Options options;
  Diagnostics errors;            ///< of its decorators; reported when it is used
  Function* function = nullptr;  ///< read on first use
  std::string external;          ///< of cuda.declare_device: the symbol that linked code defines
  bool c_abi = false;            ///< it returns its result, and not through a pointer
  bool broken = false;           ///< its own text has errors, reported already
  bool refused = false;          ///< its body has what the language leaves out, reported already
  Time time = 0;                 ///< when its `def` is run
  Place replaced;                ///< a decorator that may give its name to something else
};

/// A kernel of the file that importing it gives no name of the file's level.
struct HiddenKernel {
  std::string_view name;
  Place place;
  bool in_function = false;  ///< else in a block that does not run
};

/// `from x import *`, in the order of the file.
struct StarImport {
  Time time = 0;
  Place place;
  std::string module;
};

struct ModuleFile {
  ModuleFile(const SourceText& text_of_file, TypeTable& type_table, Report& report_of_file);

  std::string_view text(std::size_t token) const { return source.at(tokens[token].place); }
  std::uint32_t line_of(Place place) const { return source.line_of(place.begin); }
  /// The token behind the line of the statement, and behind its block if one follows.
  std::size_t end_of_statement(std::size_t at) const;
  /// The dotted name that begins at the token; moves `at` behind it.
  std::string dotted(std::size_t& at) const;
  /// The binding of the name at the current moment, or null.
  Binding* meant(std::string_view name) const;
  Parser parser() { return {tokens, source, arena, report}; }

  const SourceText& source;
  TypeTable& types;
  Report& report;
  Arena arena;
  const std::vector<Token> tokens;
  std::deque<Declaration> declarations;
  Timeline timeline;
  std::vector<StarImport> stars;
  Time now = kImported;   ///< the moment that names are looked at
  std::size_t depth = 0;  ///< number of values being computed, each for another one
  bool quiet = false;     ///< reports are discarded
};

/// Maps the alternative import paths of a module to one path.
std::string canonical(std::string path);

}  // namespace quern::frontend
