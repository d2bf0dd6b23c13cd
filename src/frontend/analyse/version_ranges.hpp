// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

/// The treatment of bounds that grow from one walk over a function to the next, so that the walks end.
enum class Growth : std::uint8_t {
  exact,      ///< they grow to what was found
  widened,    ///< they jump to 0, to 2**30 or to the type's limit
  to_limits,  ///< they become the type's
};

/// The ranges of a function's versions: those everywhere, and those under the conditions around the current
/// statement.
class VersionRanges {
 public:
  explicit VersionRanges(const Specialisation& specialisation);

  void begin_walk(Growth growth);
  /// Has a range grown in this walk?
  bool changed() const { return changed_; }
  /// Gives versions without a value the range of their type, before the last walk.
  void finish();
  std::vector<Range> take() { return std::move(everywhere_); }

  const Range& everywhere(std::uint32_t version) const { return everywhere_[version]; }
  const Range& here(std::uint32_t version) const { return here_[version]; }
  /// Adds the range to that of the version; an empty one adds nothing.
  void set(std::uint32_t version, Range range);
  /// The same for a value that wraps if it does not fit the version's type.
  void assign(std::uint32_t version, const Range& range);
  /// Limits the range here, until restore() is called with a mark made before.
  void narrow(std::uint32_t version, const Range& range);
  std::size_t mark() const { return saved_.size(); }
  void restore(std::size_t mark);

 private:
  struct Saved {
    std::uint32_t version;
    Range range;
  };

  const Specialisation& specialisation_;
  std::vector<Range> everywhere_;
  std::vector<Range> here_;
  std::vector<Saved> saved_;
  Growth growth_ = Growth::exact;
  bool changed_ = false;
};

}  // namespace quern::frontend
