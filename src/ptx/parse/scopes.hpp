// SPDX-License-Identifier: Apache-2.0
// Resolves names at one point of a module: nested scopes, parametrised register names (`%r<100>`), and labels
// that are used before their definition. Keys are views into the PTX text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/module.hpp"

namespace quern::ptx {

/// A register (index into Function::registers) or a symbol.
struct Entity {
  bool is_register = false;
  SymbolRef symbol;  ///< for a register, only `index` is used
};

/// The declaration `%r<100>`.
struct RegisterRange {
  Type type = Type::none;
  std::uint8_t vector = 1;
  std::uint32_t count = 0;
  std::uint32_t sequence = 0;  ///< number of the declaration in the function
};

/// The use of a symbol before its declaration: operand `slot` of instruction `index`, or entry `slot` of
/// branch table `index`.
struct ForwardUse {
  std::string_view name;
  TextPosition position;
  bool in_table = false;
  std::uint32_t index = 0;
  std::uint32_t slot = 0;
};

class Scopes {
 public:
  Scopes() { frames_.emplace_back(); }

  std::size_t depth() const noexcept { return frames_.size() - 1; }
  void enter();
  /// Leaves the innermost scope. Calls `resolve(use, symbol)` for each forward use in it that one of its
  /// labels satisfies.
  template <class Resolve>
  void leave(Resolve resolve);

  /// Returns false if the innermost scope has the name already.
  bool declare(std::string_view name, Entity entity);
  /// Declares, in the scope of the module, a name that no scope has yet.
  void declare_outermost(std::string_view name, Entity entity) { insert(name, entity, 0); }
  bool declare_range(std::string_view prefix, const RegisterRange& range);

  /// Returns what `name` refers to at this point. A register of a range is created at its first use:
  /// `make(range, number)` returns its index.
  template <class Make>
  std::optional<Entity> find(std::string_view name, Make make);
  std::optional<Entity> find(std::string_view name) const;
  /// The same as find, but searches the innermost scope only.
  std::optional<Entity> find_here(std::string_view name) const;

  void use_later(const ForwardUse& use);
  /// Returns the forward uses that no scope has satisfied, and removes them.
  std::vector<ForwardUse> take_unresolved();

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  struct Entry {
    std::string_view name;
    Entity entity;
    std::size_t depth = 0;
    std::uint32_t shadowed = kNone;  ///< index into entries_
  };
  struct RangeEntry {
    RegisterRange range;
    std::size_t depth = 0;
    std::uint32_t shadowed = kNone;  ///< index into ranges_
  };
  struct PendingUse {
    ForwardUse use;
    std::uint64_t order = 0;
  };
  struct Frame {
    std::vector<std::uint32_t> entries;    ///< names declared here: indices into entries_
    std::vector<std::string_view> ranges;  ///< prefixes declared here
    std::unordered_map<std::string_view, std::uint32_t> lowest_suffix;  ///< "%r" -> 5 for %r5 and %r7
    std::uint64_t first_use = 0;    ///< forward uses inside have this order or more
    std::size_t first_entry = 0;    ///< size of entries_ at the start
    std::size_t deepest_range = 0;  ///< depth of the deepest scope up to here that declares a range
  };
  struct RangeHit {
    const RangeEntry* entry = nullptr;
    std::uint32_t number = 0;
  };

  RangeHit find_range(std::string_view name, std::size_t above) const;
  void insert(std::string_view name, Entity entity, std::size_t depth);
  void forget(Frame& frame);

  std::vector<Frame> frames_;
  std::vector<Entry> entries_;
  std::vector<RangeEntry> ranges_;
  std::unordered_map<std::string_view, std::uint32_t> innermost_;
  std::unordered_map<std::string_view, std::uint32_t> range_by_prefix_;
  std::unordered_map<std::string_view, std::vector<PendingUse>> pending_;
  std::uint64_t next_use_ = 0;
};

/// "%r12" -> {"%r", 12}; nothing if there is no trailing number in canonical form (no leading zero, at most
/// nine digits).
struct NumberedName {
  std::string_view prefix;
  std::uint32_t number = 0;
};
std::optional<NumberedName> split_at(std::string_view name, std::size_t digit_count) noexcept;

template <class Resolve>
void Scopes::leave(Resolve resolve) {
  Frame& frame = frames_.back();
  for (const std::uint32_t index : frame.entries) {
    if (pending_.empty()) break;
    const Entry& entry = entries_[index];
    const auto found = pending_.find(entry.name);
    if (found == pending_.end() || entry.entity.is_register) continue;
    std::vector<PendingUse>& uses = found->second;
    for (; !uses.empty() && uses.back().order >= frame.first_use; uses.pop_back())
      resolve(uses.back().use, entry.entity.symbol);
    if (uses.empty()) pending_.erase(found);
  }
  forget(frame);
  frames_.pop_back();
}

template <class Make>
std::optional<Entity> Scopes::find(std::string_view name, Make make) {
  const auto exact = innermost_.find(name);
  const std::size_t depth_found = exact == innermost_.end() ? 0 : entries_[exact->second].depth;
  const bool found = exact != innermost_.end();
  if (found && depth_found >= frames_.back().deepest_range) return entries_[exact->second].entity;
  const RangeHit hit = find_range(name, found ? depth_found : 0);
  if (hit.entry == nullptr) return found ? std::optional(entries_[exact->second].entity) : std::nullopt;
  const std::optional<std::uint32_t> index = make(hit.entry->range, hit.number);
  if (!index) return std::nullopt;
  const Entity entity{true, {SymbolKind::module_variable, *index}};
  insert(name, entity, hit.entry->depth);
  return entity;
}

}  // namespace quern::ptx
