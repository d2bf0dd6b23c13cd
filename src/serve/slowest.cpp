// SPDX-License-Identifier: Apache-2.0
#include "serve/slowest.hpp"

#include <algorithm>
#include <chrono>

namespace quern::serve {
namespace {

/// Cuts UTF-8 before the character that crosses the limit.
void cut(std::string& text, std::size_t limit) {
  if (text.size() <= limit) return;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  while (limit > 0 && continues(text[limit])) --limit;
  text.resize(limit);
}

}  // namespace

double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void SlowestCompiles::add(SlowCompile compile) {
  cut(compile.name, kMaxNameBytes);
  const base::LockGuard lock(mutex_);
  const auto place = std::upper_bound(compiles_.begin(), compiles_.end(), compile.ms,
                                      [](double ms, const SlowCompile& each) { return ms > each.ms; });
  if (place == compiles_.end() && compiles_.size() == kCount) return;
  compiles_.insert(place, std::move(compile));
  if (compiles_.size() > kCount) compiles_.pop_back();
}

std::vector<SlowCompile> SlowestCompiles::list() const {
  const base::LockGuard lock(mutex_);
  return compiles_;
}

}  // namespace quern::serve
