// SPDX-License-Identifier: Apache-2.0
// The file as a whole: the names it binds, the functions that are kernels, the values of its constants. Host
// code is skipped: the body of a function is parsed when it is compiled, the value of a name is computed when
// it is used.
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

/// The file as a whole, for the passes behind it.
class Names {
 public:
  /// `constants` come from the host and take precedence over the file's own bindings.
  Names(const SourceText& source, TypeTable& types, Report& report,
        std::span<const abi::Constant> constants = {});
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  /// The meaning of the name at the file's level; unknown if nothing binds it.
  const Value& global(std::string_view name) { return bindings_.global(name); }
  /// From now on names have the meaning of the time when the kernel is compiled: at its line if the decorator
  /// gives its types, otherwise at the end of the import.
  void compile_as_of(const Declaration& kernel);
  /// The default value of a parameter, as of the function's own line.
  Value default_value(const Declaration& declaration, const Expr& expr);
  /// `base.name`, where base is a module; reports an attribute that does not exist.
  Value attribute(const Value& base, std::string_view name, Place place) {
    return bindings_.attribute(base, name, place);
  }
  /// The place where the file binds the name, for notes; an empty place if it does not.
  Place place_of(std::string_view name) const;
  /// The candidates for a misspelt name.
  std::vector<std::string_view> all_names() const;

  std::deque<Declaration>& declarations() { return file_.declarations; }
  /// The kernel or device function of that name, or null.
  Declaration* find(std::string_view name);
  /// The kernels that a program can name, in the file's order; it may not be certain which one a name means.
  std::vector<Declaration*> kernels();
  std::vector<HiddenKernel> hidden_kernels();
  /// Reports that the meaning of the name is not certain; returns false if it is.
  bool report_doubt(std::string_view name, Place place) { return bindings_.report_doubt(name, place); }
  void report_doubt(const Doubt& doubt, std::string_view name, Place place) {
    doubts_.report(doubt, name, place);
  }
  /// True if this name of the host program has not been reported yet.
  bool tell(const std::string& path) { return told_.insert(path).second; }
  /// Was the name imported from a module, so that it may be a number or an array?
  bool is_member(std::string_view name) const;
  /// For a device function whose signature compiles it at its own line: reports a name whose meaning there
  /// differs from the one for the kernel.
  bool report_moved(const Declaration& declaration);
  /// The place where the name is bound after the current moment; an empty place if there is none.
  Place bound_later(std::string_view name) const;
  /// The function's body, read now if it was not before.
  Function* body_of(Declaration& declaration);

  /// Reports the errors in the function's decorators, once.
  void report_errors(Declaration& declaration);

  /// The value of an expression outside functions; unknown if it is more than the language computes there.
  Value evaluate(const Expr& expr) { return evaluator_.evaluate(expr); }
  /// Reads a signature in text that is not part of the file, such as --sig; `what` names it in messages.
  bool read_signature_text(std::string_view text, const std::string& what, Place place, SignatureTypes& out) {
    return type_reader_.read_signature_text(text, what, place, out);
  }

  TypeTable& types() { return file_.types; }
  Report& report() { return file_.report; }

 private:
  // They refer to each other: a value may need a type, and a type the value of a name.
  ModuleFile file_;
  Doubts doubts_;
  Bindings bindings_;
  Evaluator evaluator_;
  TypeReader type_reader_;
  Decorators decorators_;
  std::set<std::string> told_;
};

}  // namespace quern::frontend
