// SPDX-License-Identifier: Apache-2.0
// The file as a whole: the names it binds, the functions that are kernels, the values of its constants. Host
// code is skipped: the body of a function is parsed when it is compiled, the value of a name is computed when
// it is used.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "frontend/module/timeline.hpp"
#include "frontend/syntax/ast.hpp"
#include "frontend/values/value.hpp"

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

class Names {
 public:
  /// `constants` come from the host and take precedence over the file's own bindings.
  Names(const SourceText& source, TypeTable& types, Report& report,
        std::span<const abi::Constant> constants = {});

  /// The meaning of the name at the file's level; unknown if nothing binds it.
  const Value& global(std::string_view name);
  /// From now on names have the meaning of the time when the kernel is compiled: at its line if the decorator
  /// gives its types, otherwise at the end of the import.
  void compile_as_of(const Declaration& kernel);
  /// The default value of a parameter, as of the function's own line.
  Value default_value(const Declaration& declaration, const Expr& expr);
  /// `base.name`, where base is a module; reports an attribute that does not exist.
  Value attribute(const Value& base, std::string_view name, Place place);
  /// The place where the file binds the name, for notes; an empty place if it does not.
  Place place_of(std::string_view name) const;
  /// Everything a misspelt name could have been.
  std::vector<std::string_view> all_names() const;

  std::deque<Declaration>& declarations() { return declarations_; }
  /// The kernel or device function of that name, or null.
  Declaration* find(std::string_view name);
  /// The kernels that a program can name, in the file's order; it may not be certain which one a name means.
  std::vector<Declaration*> kernels();
  std::vector<HiddenKernel> hidden_kernels();
  /// Reports that the meaning of the name is not certain; returns false if it is.
  bool report_doubt(std::string_view name, Place place);
  /// True if this name of the host program has not been reported yet.
  bool tell(const std::string& path) { return told_.insert(path).second; }
  /// Was the name imported from a module, so that it may be a number or an array?
  bool is_member(std::string_view name) const;
  /// For a device function whose signature compiles it at its own line: reports a name whose meaning there
  /// differs from the one for the kernel.
  bool report_moved(const Declaration& declaration);
  /// The place where the name is bound after the current moment; an empty place if there is none.
  Place bound_later(std::string_view name) const;
  void report_doubt(const Doubt& doubt, std::string_view name, Place place);
  /// The function's body, read now if it was not before.
  Function* body_of(Declaration& declaration);

  /// Reports the errors in the function's decorators, once.
  void report_errors(Declaration& declaration);

  /// The value of an expression outside functions; unknown if it is more than the language computes there.
  Value evaluate(const Expr& expr);
  /// The type that an expression such as float32[:, ::1] names; reports an expression that names none.
  Type type_of(const Expr& expr);
  /// Reads a signature, a tuple of types or a call. Reports an invalid one.
  bool read_signature(const Expr& expr, SignatureTypes& out);
  /// The same for text that is not part of the file, such as --sig; `what` names it in messages.
  bool read_signature_text(std::string_view text, const std::string& what, Place place, SignatureTypes& out);

  TypeTable& types() { return types_; }
  Report& report() { return report_; }

 private:
  friend class TopLevel;
  friend class Decision;

  std::size_t end_of_statement(std::size_t at) const;
  std::vector<std::string_view> all_in(std::string_view module) const;
  std::string dotted(std::size_t& at) const;
  std::string_view text(std::size_t token) const { return source_.at(tokens_[token].place); }
  std::uint32_t line_of(Place place) const { return source_.line_of(place.begin); }
  /// The binding of the name at the current moment, or null.
  Binding* meant(std::string_view name) const;

  // Uncertain meanings.
  const Value& certain(std::string_view name, Binding& binding);
  /// The same if the meaning is not certain.
  const Value& probably(std::string_view name);
  const Value& own_value(std::string_view name, Binding& binding);
  const Value& doubted(std::string_view name, Doubt doubt);
  std::optional<Doubt> doubt_about(std::string_view name, const Binding* binding, const Value* value);
  std::optional<Doubt> star_over(std::string_view name, const Binding* binding);
  void note_choices(Doubt& doubt, const Binding& binding) const;
  Value with_doubt(Doubt doubt);
  std::optional<Doubt> changed_attribute(const std::string& path) const;
  const Value& python_name(std::string_view name);
  Value text_call(const Expr& expr);
  Value comprehension(const Expr& expr);
  Value slice_of(const Value& items, const Expr& slice);
  Value augmented(const Binding& binding, std::string_view name);

  void bind_constants(std::span<const abi::Constant> constants);
  bool may_be_bound(const Binding& binding);
  Value constant_value(const abi::Constant& constant);

  // Decorators.
  std::optional<Role> role_at(std::size_t token);
  template <class Read>
  Diagnostics reported_apart(const Read& read);
  void read_decorators(Declaration& declaration);
  void read_application(std::string_view name, Binding& binding);
  void read_decorator(Declaration& declaration, const Expr& decorator);
  const Declaration* function_named(const Expr& expr) const;
  void read_option(Declaration& declaration, const Expr& keyword);

  // Values.
  Value value_of(Binding& binding, std::string_view name);
  Value assigned(const Binding& binding, std::string_view name);
  Value evaluate_name(const Expr& expr);
  /// `base.name` of the host's objects.
  Value attribute_of(const Value& base, std::string_view name);
  Value evaluate_call(const Expr& expr);
  Value evaluate_binary(const Expr& expr);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_choice(const Expr& expr);
  Value evaluate_items(const Expr& expr);
  Value evaluate_subscript(const Expr& expr);
  struct HostCall {
    std::vector<Value> arguments;
    std::vector<std::pair<std::string_view, Value>> named;
    Type dtype = nullptr;
    bool odd_dtype = false;  ///< one is given that kernels do not have
  };
  HostCall read_call(const Expr& expr);
  Value numpy_array(std::string_view path, const HostCall& call);
  Value evaluate_elements(const Expr& expr, const Value& left, const Value& right);
  Value evaluate_method(const Expr& expr, const Value& array);
  Value record_dtype(const Expr& fields, bool align);
  Type element_type(const Expr& expr);
  Value declare_device(const Expr& call);
  void read_links(const Expr& expr, std::vector<std::string>& out);
  Value read_enumeration(const Binding& binding, std::string_view name);
  Value member_of(const Value& enumeration, std::string_view name) const;
  Value evaluate_path(const std::string& path);

  const Expr* assigned_expr(std::string_view name);
  const Expr* assigned_expr_of(const Binding& binding, std::string_view name);
  const Expr& signature_meant(const Expr& expr);
  Type array_type(const Expr& expr);
  Type record_type(const Expr& list, const Expr& size);
  Type called_type(const Expr& expr);
  std::optional<bool> read_only_of(const Expr& expr);

  const SourceText& source_;
  TypeTable& types_;
  Report& report_;
  Arena arena_;
  std::vector<Token> tokens_;
  std::deque<Declaration> declarations_;
  std::size_t depth_ = 0;
  Timeline timeline_;
  Time now_ = kImported;  ///< the moment that names are looked at
  /// `from x import *`, in the order of the file.
  struct Star {
    Time time = 0;
    Place place;
    std::string module;
  };
  std::vector<Star> stars_;
  std::map<std::string, Value, std::less<>> constants_;  ///< the host's
  std::deque<Doubt> doubts_;
  std::map<std::pair<std::string, Time>, Value> doubted_;
  std::vector<std::pair<std::string_view, Value>> inner_names_;  ///< of comprehensions
  std::set<std::string> told_;
  bool quiet_ = false;                 ///< reports are discarded
  const Doubt* doubt_seen_ = nullptr;  ///< the last one that a value was computed with
  std::map<std::string, Value, std::less<>> python_names_;
  std::map<std::string, Value, std::less<>> attributes_;  ///< of modules, by path
  std::map<std::string, std::map<std::string, Value, std::less<>>, std::less<>> enumerations_;
};

/// Maps the alternative import paths of a module to one path.
std::string canonical(std::string path);
/// True for a class of the file whose members are numbers; Python's enum.
bool is_enumeration(const Value& value);

/// The extents given by a number or a tuple of numbers.
std::optional<std::vector<std::int64_t>> shape_of(const Value& value);
/// May a field of a record be an array of this shape?
bool fits_record(const std::vector<std::int64_t>& shape, Type element);

/// "a.b.c" if the expression consists of names alone; otherwise empty.
std::string dotted_text(const Expr& expr);
/// An array of elements that are cast to the type; a value of the host program if one does not fit.
Value array_of(std::vector<Value> elements, std::vector<std::int64_t> shape, Type dtype);
/// The number as NumPy stores it in that type, or the record; unknown if it does not fit.
Value cast(const Value& value, Type type);
/// NumPy's arithmetic with scalars of float32; unknown for anything else.
Value fold_single(const TypeTable& types, Tok op, const Value& a, const Value& b);

}  // namespace quern::frontend
