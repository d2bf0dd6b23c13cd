// SPDX-License-Identifier: Apache-2.0
#include "frontend/analyse/version_ranges.hpp"

#include "frontend/analyse/range_arithmetic.hpp"

namespace quern::frontend {
namespace {

// a growing bound jumps to it before it jumps to the limit of the type
constexpr std::int64_t kWord = std::int64_t{1} << 30;

}  // namespace

VersionRanges::VersionRanges(const Specialisation& specialisation) : specialisation_(specialisation) {
  const std::vector<Version>& versions = specialisation.scope->versions;
  everywhere_.assign(versions.size(), kNothing);
  for (std::uint32_t i = 0; i < versions.size(); ++i)
    if (versions[i].kind == Version::Kind::parameter)
      everywhere_[i] = of_type(specialisation.version_types[i]);
  here_ = everywhere_;
}

void VersionRanges::begin_walk(Growth growth) {
  here_ = everywhere_;
  growth_ = growth;
  changed_ = false;
}

void VersionRanges::finish() {
  const std::vector<Version>& versions = specialisation_.scope->versions;
  for (std::uint32_t i = 0; i < everywhere_.size(); ++i)
    if (is_nothing(everywhere_[i]) && versions[i].kind != Version::Kind::undefined)
      everywhere_[i] = of_type(specialisation_.version_types[i]);
  here_ = everywhere_;
}

void VersionRanges::set(std::uint32_t version, Range range) {
  if (version == kNoVersion || is_nothing(range)) return;
  const Type type = specialisation_.version_types[version];
  if (type == nullptr || !(is_integer(type) || type->kind == TypeKind::boolean)) return;
  Range next = join(everywhere_[version], range);
  if (!(next == everywhere_[version])) {
    changed_ = true;
    const Range limits = of_type(type);
    if (growth_ != Growth::exact && !is_nothing(everywhere_[version])) {
      if (next.low < everywhere_[version].low)
        next.low = next.low >= 0 ? 0 : next.low >= -kWord && limits.low < -kWord ? -kWord : limits.low;
      if (next.high > everywhere_[version].high && next.high <= kWord && limits.high > kWord)
        next.high = kWord;
      else if (next.high > everywhere_[version].high)
        next.high = limits.high;
    }
    if (growth_ == Growth::to_limits) next = limits;
  }
  everywhere_[version] = here_[version] = next;
}

void VersionRanges::assign(std::uint32_t version, const Range& range) {
  if (version != kNoVersion) set(version, clipped(range, specialisation_.version_types[version]));
}

void VersionRanges::narrow(std::uint32_t version, const Range& range) {
  saved_.push_back({version, here_[version]});
  here_[version] = range;
}

void VersionRanges::restore(std::size_t mark) {
  for (; saved_.size() > mark; saved_.pop_back()) here_[saved_.back().version] = saved_.back().range;
}

}  // namespace quern::frontend
