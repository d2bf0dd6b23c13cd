// SPDX-License-Identifier: Apache-2.0
#include "session/entry_index.hpp"

namespace quern::session {
namespace {

std::string without_spaces(std::string_view text) {
  std::string result(text);
  std::erase(result, ' ');
  return result;
}

}  // namespace

EntryIndex::EntryIndex(const abi::PtxImage& image) {
  by_name_.reserve(image.entries.size());
  by_lowered_name_.reserve(image.entries.size());
  for (const abi::EntryInfo& entry : image.entries) {  // the first of several with one name is used
    by_name_.try_emplace(entry.name, &entry);
    if (!entry.lowered_name.empty()) by_lowered_name_.try_emplace(entry.lowered_name, &entry);
    if (entry.name.find(' ') != std::string::npos)
      without_spaces_.try_emplace(without_spaces(entry.name), &entry);
  }
}

const abi::EntryInfo* EntryIndex::find(std::string_view name) const {
  for (const Names* const names : {&by_name_, &by_lowered_name_})
    if (const auto found = names->find(name); found != names->end()) return found->second;
  const std::string plain = without_spaces(name);
  if (const auto found = without_spaces_.find(plain); found != without_spaces_.end()) return found->second;
  const auto found = by_name_.find(plain);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace quern::session
