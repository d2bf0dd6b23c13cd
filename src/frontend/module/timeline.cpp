// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/timeline.hpp"

#include <algorithm>

namespace quern::frontend {

Binding& Timeline::bind(std::string_view name, Binding binding) {
  Binding& kept = bindings_.emplace_back(std::move(binding));
  restore(name, &kept);
  return kept;
}

void Timeline::restore(std::string_view name, Binding* binding) {
  auto found = names_.find(name);
  if (found == names_.end()) found = names_.emplace(std::string(name), std::vector<Entry>{}).first;
  found->second.push_back({++now_, binding});
  journal_.push_back(found->first);
}

Binding* Timeline::find(std::string_view name, Time at) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return nullptr;
  const auto behind = std::upper_bound(found->second.begin(), found->second.end(), at,
                                       [](Time time, const Entry& entry) { return time < entry.time; });
  return behind == found->second.begin() ? nullptr : std::prev(behind)->binding;
}

Binding& Timeline::root_of(Binding& binding) {
  Binding* at = &binding;
  while (at->parent_ != nullptr) at = at->parent_;
  return *at;
}

/// Union by rank without path compression: paths are short, and the time of each union remains known.
void Timeline::share(Binding& one, Binding& other) {
  Binding *high = &root_of(one), *low = &root_of(other);
  if (high == low) return;
  if (high->rank_ < low->rank_) std::swap(high, low);
  if (high->rank_ == low->rank_) ++high->rank_;
  low->parent_ = high;
  low->joined_ = ++now_;
}

void Timeline::change(Binding& binding, Place place) { root_of(binding).changes_.push_back({++now_, place}); }

const Change* Timeline::changed(const Binding& binding, Time since, Time at) const {
  const Change* earliest = nullptr;
  Time from = since;
  for (const Binding* root = &binding; root != nullptr;
       from = std::max(from, root->joined_), root = root->parent_) {
    if (from >= at) break;
    // After a root was joined to another one, changes are recorded at that root.
    const Change* found = first(root->changes_, from, at);
    if (found != nullptr && (earliest == nullptr || found->time < earliest->time)) earliest = found;
  }
  return earliest;
}

const Change* Timeline::first(const std::vector<Change>& changes, Time since, Time at) {
  const auto found = std::upper_bound(changes.begin(), changes.end(), since,
                                      [](Time time, const Change& change) { return time < change.time; });
  return found == changes.end() || found->time > at ? nullptr : &*found;
}

void Timeline::expose(std::string_view name, Place place) {
  exposed_.try_emplace(std::string(name), Change{++now_, place});
}

const Change* Timeline::exposed(std::string_view name, Time at) const {
  const auto found = exposed_.find(name);
  return found == exposed_.end() || found->second.time > at ? nullptr : &found->second;
}

std::vector<std::string_view> Timeline::touched_since(std::size_t mark) const {
  std::vector<std::string_view> names(journal_.begin() + static_cast<std::ptrdiff_t>(mark), journal_.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace quern::frontend
