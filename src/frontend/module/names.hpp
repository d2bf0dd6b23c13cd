// SPDX-License-Identifier: Apache-2.0
// The file as a whole: the names that it binds, the functions that are kernels, the values of its constants.
// Host code is skipped: the body of a function is parsed when the function is compiled, and the value of a
// name is computed when it is used.
#pragma once

#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "frontend/module/bindings.hpp"
#include "frontend/module/decorators.hpp"
#include "frontend/module/doubt.hpp"
#include "frontend/module/evaluate.hpp"
#include "frontend/module/module_file.hpp"
#include "frontend/module/signature.hpp"

namespace quern::frontend {

/// The file as a whole, as later passes use it.
class Names {
 public:
  /// `constants` come from the host and take precedence over the file's own bindings.
  Names(const SourceText& source, TypeTable& types, Report& report,
        std::span<const abi::Constant> constants = {});
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  /// The value of the name at the file's level; unknown if nothing binds it.
  const Value& global(std::string_view name) { return bindings_.global(name); }
  /// From now on, names have their values of the time at which the kernel is compiled: at its own line if the
  /// decorator gives its types, otherwise at the end of the import.
  void compile_as_of(const Declaration& kernel);
  /// The default value of a parameter, at the time of the function's own line.
  Value default_value(const Declaration& declaration, const Expr& expr);
  /// `base.name`, if base is a module. Reports an attribute that does not exist.
  Value attribute(const Value& base, std::string_view name, Place place) {
    return bindings_.attribute(base, name, place);
  }
  /// The place at which the file binds the name, for notes. Empty if it does not.
  Place place_of(std::string_view name) const;
  /// All names, as candidates for corrections of a misspelt name.
  std::vector<std::string_view> all_names() const;

  std::deque<Declaration>& declarations() { return file_.declarations; }
  /// The kernel or device function of that name, or null.
  Declaration* find(std::string_view name);
  /// The kernels that a program can name, in the order of the file. It may be uncertain which kernel a name
  /// refers to.
  std::vector<Declaration*> kernels();
  std::vector<HiddenKernel> hidden_kernels();
  /// If the meaning of the name is not certain, reports that and returns true.
  bool report_doubt(std::string_view name, Place place) { return bindings_.report_doubt(name, place); }
  void report_doubt(const Doubt& doubt, std::string_view name, Place place) {
    doubts_.report(doubt, name, place);
  }
  /// Returns true at the first call for this name of the host program. Used to report each name once.
  bool tell(const std::string& path) { return told_.insert(path).second; }
  /// True if the name was imported from a module, so that it may be a number or an array.
  bool is_member(std::string_view name) const;
  /// For a device function whose signature compiles it at its own line: reports a name that has another value
  /// there than for the kernel.
  bool report_moved(const Declaration& declaration);
  /// The place at which the name is bound after the current moment; empty if there is none.
  Place bound_later(std::string_view name) const;
  /// The function's body, which is parsed at the first call.
  Function* body_of(Declaration& declaration);

  /// Reports the errors in the function's decorators, once.
  void report_errors(Declaration& declaration);

  /// The value of an expression outside functions; unknown if the language does not compute it there.
  Value evaluate(const Expr& expr) { return evaluator_.evaluate(expr); }
  /// Reads a signature in text that is not part of the file, such as --sig; `what` names it in messages.
  bool read_signature_text(std::string_view text, const std::string& what, Place place, SignatureTypes& out) {
    return type_reader_.read_signature_text(text, what, place, out);
  }

  TypeTable& types() { return file_.types; }
  Report& report() { return file_.report; }

 private:
  // These members refer to each other: a value may need a type, and a type the value of a name.
  ModuleFile file_;
  Doubts doubts_;
  Bindings bindings_;
  Evaluator evaluator_;
  TypeReader type_reader_;
  Decorators decorators_;
  std::set<std::string> told_;
};

}  // namespace quern::frontend
