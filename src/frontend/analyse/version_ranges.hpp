// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontend/analyse/program.hpp"

namespace quern::frontend {

/// The growth that bounds may have from one walk over a function to the next, so that the walks end.
enum class Growth : std::uint8_t {
  exact,      ///< to the bounds that were found
  widened,    ///< to 0, to 2**30 or to the limit of the type
  to_limits,  ///< to the limits of the type
};

/// The ranges of a function's versions: those that hold everywhere, and those that hold under the conditions
/// around the current statement.
class VersionRanges {
 public:
  explicit VersionRanges(const Specialisation& specialisation);

  void begin_walk(Growth growth);
  /// True if a range has grown in this walk.
  bool changed() const { return changed_; }
  /// Called before the last walk: versions without a value get the range of their type.
  void finish();
  std::vector<Range> take() { return std::move(everywhere_); }

  const Range& everywhere(std::uint32_t version) const { return everywhere_[version]; }
  const Range& here(std::uint32_t version) const { return here_[version]; }
  /// Extends the range of the version by `range`, which may be empty.
  void set(std::uint32_t version, Range range);
  /// The same, for a value that wraps if it does not fit the version's type.
  void assign(std::uint32_t version, const Range& range);
  /// Limits the range until restore() is called with an earlier mark.
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
