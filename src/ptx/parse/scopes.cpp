// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/scopes.hpp"

#include <algorithm>

namespace quern::ptx {

std::optional<NumberedName> split_at(std::string_view name, std::size_t digit_count) noexcept {
  if (digit_count == 0 || digit_count > 9 || name.size() <= digit_count) return std::nullopt;
  const std::string_view digits = name.substr(name.size() - digit_count);
  if (digits[0] == '0' && digit_count > 1) return std::nullopt;
  std::uint32_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return NumberedName{name.substr(0, name.size() - digit_count), number};
}

void Scopes::enter() {
  Frame frame;
  frame.first_use = next_use_;
  frame.first_entry = entries_.size();
  frame.deepest_range = frames_.back().deepest_range;
  frames_.push_back(std::move(frame));
}

void Scopes::insert(std::string_view name, Entity entity, std::size_t depth) {
  const auto [slot, fresh] = innermost_.try_emplace(name, static_cast<std::uint32_t>(entries_.size()));
  const std::uint32_t index = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({name, entity, depth, fresh ? kNone : slot->second});
  slot->second = index;
  frames_[depth].entries.push_back(index);
}

bool Scopes::declare(std::string_view name, Entity entity) {
  Frame& frame = frames_.back();
  const auto exact = innermost_.find(name);
  if (exact != innermost_.end() && entries_[exact->second].depth == depth()) return false;
  if (frame.deepest_range == depth() && !frame.ranges.empty()) {
    const RangeHit hit = find_range(name, depth() == 0 ? 0 : depth() - 1);
    if (hit.entry != nullptr && hit.entry->depth == depth()) return false;
  }
  for (std::size_t digits = 1; entity.is_register && digits <= 9; ++digits) {
    const std::optional<NumberedName> split = split_at(name, digits);
    if (!split) continue;
    const auto [slot, fresh] = frame.lowest_suffix.try_emplace(split->prefix, split->number);
    if (!fresh) slot->second = std::min(slot->second, split->number);
  }
  insert(name, entity, depth());
  return true;
}

bool Scopes::declare_range(std::string_view prefix, const RegisterRange& range) {
  Frame& frame = frames_.back();
  const auto lowest = frame.lowest_suffix.find(prefix);
  if (lowest != frame.lowest_suffix.end() && lowest->second < range.count) return false;
  const auto [slot, fresh] = range_by_prefix_.try_emplace(prefix, static_cast<std::uint32_t>(ranges_.size()));
  if (!fresh && ranges_[slot->second].depth == depth()) return false;
  ranges_.push_back({range, depth(), fresh ? kNone : slot->second});
  slot->second = static_cast<std::uint32_t>(ranges_.size() - 1);
  frame.ranges.push_back(prefix);
  frame.deepest_range = depth();
  return true;
}

// Finds the deepest range that contains `name`, in a scope at a depth below `above`.
Scopes::RangeHit Scopes::find_range(std::string_view name, std::size_t above) const {
  RangeHit best;
  if (range_by_prefix_.empty()) return best;
  for (std::size_t digits = 1; digits <= 9; ++digits) {
    const std::optional<NumberedName> split = split_at(name, digits);
    if (!split) continue;
    const auto found = range_by_prefix_.find(split->prefix);
    if (found == range_by_prefix_.end()) continue;
    std::uint32_t index = found->second;
    while (index != kNone && split->number >= ranges_[index].range.count) index = ranges_[index].shadowed;
    if (index == kNone || ranges_[index].depth <= above) continue;
    if (best.entry == nullptr || ranges_[index].depth > best.entry->depth)
      best = {&ranges_[index], split->number};
  }
  return best;
}

std::optional<Entity> Scopes::find(std::string_view name) const {
  const auto exact = innermost_.find(name);
  if (exact == innermost_.end()) return std::nullopt;
  return entries_[exact->second].entity;
}

std::optional<Entity> Scopes::find_here(std::string_view name) const {
  const auto exact = innermost_.find(name);
  if (exact == innermost_.end() || entries_[exact->second].depth != depth()) return std::nullopt;
  return entries_[exact->second].entity;
}

void Scopes::use_later(const ForwardUse& use) { pending_[use.name].push_back({use, next_use_++}); }

std::vector<ForwardUse> Scopes::take_unresolved() {
  std::vector<PendingUse> all;
  for (const auto& [name, uses] : pending_) all.insert(all.end(), uses.begin(), uses.end());
  std::sort(all.begin(), all.end(),
            [](const PendingUse& a, const PendingUse& b) { return a.order < b.order; });
  pending_.clear();
  std::vector<ForwardUse> result;
  for (const PendingUse& pending : all) result.push_back(pending.use);
  return result;
}

void Scopes::forget(Frame& frame) {
  for (auto index = frame.entries.rbegin(); index != frame.entries.rend(); ++index) {
    const Entry& entry = entries_[*index];
    const auto slot = innermost_.find(entry.name);
    if (entry.shadowed == kNone) {
      innermost_.erase(slot);
    } else {
      slot->second = entry.shadowed;
    }
  }
  for (auto prefix = frame.ranges.rbegin(); prefix != frame.ranges.rend(); ++prefix) {
    const auto slot = range_by_prefix_.find(*prefix);
    const std::uint32_t shadowed = ranges_[slot->second].shadowed;
    if (shadowed == kNone) {
      range_by_prefix_.erase(slot);
    } else {
      slot->second = shadowed;
    }
  }
  // The last register created may belong to a range of an outer scope, so memory is released only with the
  // outermost scope of a function. The name of the function itself was declared meanwhile, in the module's
  // scope.
  if (depth() == 1) {
    const std::size_t outermost = frames_[0].entries.empty() ? 0 : frames_[0].entries.back() + std::size_t{1};
    entries_.resize(std::max(frame.first_entry, outermost));
    ranges_.clear();
  }
}

}  // namespace quern::ptx
