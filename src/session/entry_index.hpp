// SPDX-License-Identifier: Apache-2.0
// An image's kernels by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "abi/kernel_request.hpp"

namespace quern::session {

/// Finds kernels by name in time that does not grow with their number: generated modules have tens of
/// thousands. Immutable.
class EntryIndex {
 public:
  explicit EntryIndex(const abi::PtxImage& image);
  EntryIndex(const EntryIndex&) = delete;
  EntryIndex& operator=(const EntryIndex&) = delete;

  /// The kernel with the author's name `name` ("over(double*, int)" and "over(double *,int)" are equal) or
  /// that name in the PTX; null if there is none. It lives as long as the image does.
  const abi::EntryInfo* find(std::string_view name) const;

 private:
  using Names = std::unordered_map<std::string_view, const abi::EntryInfo*>;
  Names by_name_;
  Names by_lowered_name_;
  std::unordered_map<std::string, const abi::EntryInfo*> without_spaces_;  ///< of names that have some
};

}  // namespace quern::session
