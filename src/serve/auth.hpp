// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::serve {

/// The bearer tokens that are accepted. Immutable. Holds digests of them, no tokens.
class Tokens {
 public:
  /// Everyone is accepted.
  Tokens() = default;
  /// One token a line, of at least 16 printable characters; empty lines and lines that begin with '#' are
  /// skipped. Refuses a file without tokens, and one that others than its owner and group can read.
  static Expected<Tokens> read(const std::string& path);
  static Expected<Tokens> parse(std::string_view text, const std::string& path);

  bool required() const noexcept { return required_; }
  /// Judges an Authorization header's value, in a time that does not depend on how much of it is right.
  bool accept(std::string_view authorization) const;

 private:
  bool required_ = false;
  std::vector<base::Digest> digests_;
};

}  // namespace quern::serve
