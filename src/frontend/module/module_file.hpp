// SPDX-License-Identifier: Apache-2.0
// The file that is translated: its text, its functions, and the bindings of its import. The classes that
// evaluate names, values, types and decorators share it.
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

/// A signature such as void(float32[:], int32), from the decorator or the launch.
struct SignatureTypes {
  Type result = nullptr;  ///< null if none was written
  std::vector<Type> parameters;
};

struct Options {
  bool fastmath = false;
  bool debug = false;
  bool lineinfo = false;
  bool force_inline = false;
  std::int64_t max_registers = 0;
  std::vector<std::int64_t> launch_bounds;
  std::vector<std::string> links;  ///< linked files of CUDA C++
};

/// A function of the file.
struct Declaration {
  std::string_view name;
  Place place;
  std::size_t token = 0;                ///< token of its `def`
  std::vector<std::size_t> decorators;  ///< the tokens after each '@'
  Role role = Role::host;
  std::vector<SignatureTypes> signatures;
  Options options;
  Diagnostics errors;            ///< errors in its decorators; reported when it is used
  Function* function = nullptr;  ///< read at first use
  std::string external;          ///< for cuda.declare_device: the symbol that linked code defines
  bool c_abi = false;            ///< returns its result directly, not through a pointer
  bool broken = false;           ///< its text has errors, which were reported
  bool refused = false;          ///< its body contains unsupported syntax, which was reported
  Time time = 0;                 ///< the time at which its `def` runs
  Place replaced;                ///< a decorator that may bind its name to another object
};

/// A kernel of the file that is not bound to a name of the file's level after the import.
struct HiddenKernel {
  std::string_view name;
  Place place;
  bool in_function = false;  ///< true: it is in a function; false: in a block that does not run
};

/// A `from x import *`, in the order of the file.
struct StarImport {
  Time time = 0;
  Place place;
  std::string module;
};

struct ModuleFile {
  ModuleFile(const SourceText& text_of_file, TypeTable& type_table, Report& report_of_file);

  std::string_view text(std::size_t token) const { return source.at(tokens[token].place); }
  std::uint32_t line_of(Place place) const { return source.line_of(place.begin); }
  /// The token after the statement's line, or after its block if one follows.
  std::size_t end_of_statement(std::size_t at) const;
  /// Reads the dotted name at the token; moves `at` after it.
  std::string dotted(std::size_t& at) const;
  /// The binding of the name at the current moment, or null if it has none.
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
  Time now = kImported;   ///< the moment at which names are evaluated
  std::size_t depth = 0;  ///< nesting depth of values whose computation needs other values
  bool quiet = false;     ///< true: reports are discarded
};

/// Maps the alternative import paths of a module to one path.
std::string canonical(std::string path);

}  // namespace quern::frontend
