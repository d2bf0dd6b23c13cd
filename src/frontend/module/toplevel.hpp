// SPDX-License-Identifier: Apache-2.0
// Follows the import of a file, statement by statement, without running it: lines that bind a name for
// certain, bindings between which a line decides, and other changes. The result is the Timeline of the file.
// Unknown conditions are not guessed: both paths are followed, and the names that they bind are uncertain.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/module/decide.hpp"
#include "frontend/module/decorators.hpp"

namespace quern::frontend {

/// The timeline's name for an attribute of a module.
inline std::string attribute_key(std::string_view path) { return "." + std::string(path); }
/// True if `from module import *` can bind the name. `python`: it is also a name of Python. `import`: the
/// file has imported it.
bool may_export(std::string_view module, std::string_view name, bool python, bool import);
/// True if an import of the module succeeds wherever the file is imported.
bool is_known_module(std::string_view path);
/// True for a name of Python's builtins.
bool is_python_name(std::string_view name);

/// Effects of a call on the arrays that it receives.
enum class ArgumentEffect : std::uint8_t {
  reads,
  aliases,  ///< the result may be one of them, or a view of one
  changes,
};
ArgumentEffect effect_of_function(std::string_view path);
ArgumentEffect effect_of_method(std::string_view name);

/// Examines the tokens of statements: their ends, the brackets around them, and how they use names.
class TokenReader {
 protected:
  explicit TokenReader(ModuleFile& file);

  enum class Use : std::uint8_t { read, flows, called, changed };
  Use use_of(std::size_t token, bool target) const;
  Use use_outside(std::size_t token) const;
  std::string path_of(std::size_t first, std::size_t end) const;
  std::size_t chain_begin(std::size_t open) const;
  std::size_t value_begin(std::size_t at, std::size_t end) const;
  std::size_t statement_end(std::size_t at, std::size_t end) const;

  // Text with errors may end anywhere. Beyond the last token, this returns the end of the file.
  Tok kind(std::size_t token) const {
    return token < file_.tokens.size() ? file_.tokens[token].kind : Tok::end;
  }
  Place place(std::size_t token) const {
    return token < file_.tokens.size() ? file_.tokens[token].place : file_.tokens.back().place;
  }
  std::string_view text(std::size_t token) const { return file_.source.at(place(token)); }
  Place line_place(std::size_t token) const;
  bool is_name_itself(std::size_t token) const;

  ModuleFile& file_;
  Timeline& timeline_;
  std::vector<std::size_t> partner_;  ///< for a bracket: the matching one
  std::vector<std::size_t> around_;   ///< the innermost open bracket around a token; 0 if there is none
};

/// Follows the import, statement by statement.
class TopLevel : private TokenReader {
 public:
  TopLevel(ModuleFile& file, Evaluator& evaluator, Bindings& bindings, Decorators& decorators);
  void run();

 private:
  // A header with its ':' and the statements that belong to it.
  struct Suite {
    std::size_t header = 0, colon = 0, begin = 0, end = 0, next = 0;
  };
  struct Outcome {
    Time end = 0;
  };
  using Block = std::function<void()>;

  // Statements.
  void suite(std::size_t at, std::size_t end);
  std::size_t statement(std::size_t at, std::size_t end);
  std::optional<Suite> suite_at(std::size_t at) const;
  std::size_t if_chain(const Suite& first);
  std::size_t try_statement(const Suite& first);
  std::size_t loop(const Suite& header);
  std::size_t with(const Suite& header);
  std::size_t match(const Suite& header);
  std::size_t function(std::size_t at, std::size_t next);
  void default_values(std::size_t open);
  std::size_t host_class(const Suite& header);
  void line(std::size_t at, std::size_t end);
  void simple(std::size_t at, std::size_t end);
  void assignment(std::size_t at, std::size_t end);
  void import(std::size_t at, std::size_t end);
  void from(std::size_t at, std::size_t end);
  void star(std::size_t at, const std::string& module);
  void remove(std::size_t at, std::size_t end);
  void bind_targets(std::size_t at, std::size_t end, const std::vector<Binding*>& shared);

  // Paths that the import may take.
  void branches(const std::vector<Block>& ways, Place because, const char* why);
  void merge(std::size_t mark, const std::vector<Outcome>& outcomes, Place because, const char* why);
  void doubt_since(std::size_t mark, Time before, Place because, const char* why);
  std::optional<bool> decide(std::size_t at, std::size_t end);
  void risk(std::size_t token);
  Binding& bind(std::string_view name, Binding binding);

  // Side effects of statements other than binding names: toplevel_effects.cpp.
  struct Facts {
    struct NameUse {
      std::size_t token = 0;
      Use use = Use::read;
    };
    std::vector<NameUse> uses;      ///< uses of names that are not local to it
    std::vector<std::size_t> sets;  ///< assignments to names that it declares `global`
  };
  /// Applies the side effects of the tokens. Returns the bindings with which the value may share memory.
  std::vector<Binding*> effects(std::size_t at, std::size_t end, std::size_t value);
  void use_name(std::size_t token, Use use, std::size_t from, std::vector<Binding*>* flows);
  void change_attribute(std::size_t token, const Binding& module, std::size_t from);
  void hidden_text(std::size_t token, std::vector<Binding*>* flows);
  void run_function(Binding& root, std::size_t from, bool escapes);
  void apply(const Facts& facts, std::size_t from, bool escapes, std::vector<Binding*>& open);
  const Facts& facts_of(const Binding& binding);
  void read_body(std::size_t at, std::size_t end, std::set<std::string_view> own, Facts& facts);
  void own_names(std::size_t at, std::size_t end, std::set<std::string_view>& own,
                 std::set<std::string_view>& outer, Facts& facts) const;

  Decorators& roles_;  ///< the roles that decorators give to functions
  Decision decision_;
  std::vector<std::size_t> decorators_;
  std::map<std::size_t, Declaration*> declared_;  ///< by token of the `def`
  std::map<std::size_t, Facts> facts_;            ///< by token of a `def`, a class or an assignment
  bool deciding_ = true;                          ///< false in a loop, whose lines may run again
  bool ended_ = false;                            ///< a `raise` was reached
  bool failed_ = false;                           ///< a line always raises NameError
  unsigned guarded_ = 0;                          ///< the number of enclosing `try`
  std::optional<Change> risk_;                    ///< the first line that may raise
  std::size_t budget_ = 0;
};

}  // namespace quern::frontend
