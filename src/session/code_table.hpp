// SPDX-License-Identifier: Apache-2.0
// A module's code beside its own image.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/thread_annotations.hpp"

namespace quern::session {

/// The images of a module's kernels that are compiled one by one: Kernel Python's for their argument types,
/// and templates' instances, whose types are empty. Thread-safe.
class CodeTable {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;
  struct Piece {
    std::string kernel;
    std::string types;
    Image image;
  };

  CodeTable() = default;
  explicit CodeTable(std::vector<Piece> pieces) {
    for (Piece& piece : pieces) add(std::move(piece.kernel), std::move(piece.types), std::move(piece.image));
  }

  /// The first image for a kernel and types stays.
  void add(std::string kernel, std::string types, Image image) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    images_.try_emplace({std::move(kernel), std::move(types)}, std::move(image));
  }
  /// Null if there is none.
  Image find(const std::string& kernel, const std::string& types) const QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    const auto found = images_.find({kernel, types});
    return found == images_.end() ? nullptr : found->second;
  }
  std::vector<std::string> types_of(std::string_view kernel) const QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    std::vector<std::string> types;
    for (const auto& [key, image] : images_)
      if (key.first == kernel) types.push_back(key.second);
    return types;
  }
  std::vector<Piece> pieces() const QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    std::vector<Piece> all;
    for (const auto& [key, image] : images_) all.push_back({key.first, key.second, image});
    return all;
  }

 private:
  mutable base::Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Image> images_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::session
