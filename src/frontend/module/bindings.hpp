// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "abi/kernel_request.hpp"
#include "frontend/module/doubt.hpp"
#include "frontend/module/module_file.hpp"

namespace quern::frontend {

class Evaluator;

/// The values of names at the file's level, and of attributes of modules.
class Bindings {
 public:
  Bindings(ModuleFile& file, Doubts& doubts, Evaluator& evaluator)
      : file_(file), doubts_(doubts), evaluator_(evaluator) {}

  /// The value of the name at the file's level; unknown if nothing binds it.
  const Value& global(std::string_view name);
  /// The same, if the value is not certain.
  const Value& probably(std::string_view name);
  /// The value of a name that is imported from "module.name".
  Value path_value(const std::string& path);
  /// A member of an enumeration; a value of the host program if it is not a number.
  Value member_of(const Value& enumeration, std::string_view name) const;
  /// `base.name` for a module or an enumeration. Reports an attribute that does not exist.
  Value attribute(const Value& base, std::string_view name, Place place);
  /// If the meaning of the name is not certain, reports that and returns true.
  bool report_doubt(std::string_view name, Place place);
  /// Binds a constant of the host, which takes precedence over the file's own binding.
  void give(const std::string& name, Value value) { given_.insert_or_assign(name, std::move(value)); }

 private:
  const Value& certain(std::string_view name, Binding& binding);
  const Value& own_value(std::string_view name, Binding& binding);
  const Value& python_name(std::string_view name);
  Value value_of(Binding& binding, std::string_view name);
  Value assigned(const Binding& binding, std::string_view name);
  Value augmented(const Binding& binding, std::string_view name);
  Value read_enumeration(const Binding& binding, std::string_view name);

  using Values = std::map<std::string, Value, std::less<>>;
  ModuleFile& file_;
  Doubts& doubts_;
  Evaluator& evaluator_;
  Values given_;
  Values python_names_;
  Values attributes_;  ///< attributes of modules, by path
  std::map<std::string, Values, std::less<>> enumerations_;
};

/// True for a class of the file that is a Python enum with numbers as members.
bool is_enumeration(const Value& value);

/// Binds the host's constants to names of the file. Reports those that cannot be bound.
void bind_constants(ModuleFile& file, Bindings& bindings, std::span<const abi::Constant> constants);

}  // namespace quern::frontend
