// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/module/module_file.hpp"

namespace quern::frontend {

/// Finds file-level names whose value after the import is not certain, and the lines that make it uncertain.
class Doubts {
 public:
  explicit Doubts(ModuleFile& file) : file_(file) {}

  /// `value`: the value that the binding's own line assigns; null if no line binds the name.
  std::optional<Doubt> about(std::string_view name, const Binding* binding, const Value* value) const;
  /// math.pi = 3.0
  std::optional<Doubt> changed_attribute(const std::string& path) const;
  /// Returns a value that is unknown because of the doubt.
  Value with_doubt(Doubt doubt);
  /// The same, stored once for each name and moment.
  const Value& doubted(std::string_view name, Doubt doubt);
  void report(const Doubt& doubt, std::string_view name, Place place) const;

  /// The doubt about the last value that was computed; null if there is none.
  const Doubt* seen() const { return seen_; }
  void see(const Doubt* doubt) { seen_ = doubt; }

 private:
  std::optional<Doubt> star_over(std::string_view name, const Binding* binding) const;
  void note_choices(Doubt& doubt, const Binding& binding) const;

  ModuleFile& file_;
  std::deque<Doubt> doubts_;
  std::map<std::pair<std::string, Time>, Value> doubted_;
  const Doubt* seen_ = nullptr;
};

}  // namespace quern::frontend
