// SPDX-License-Identifier: Apache-2.0
// The keys of requests that depend on no file of the author's, for a hit in memory without planning it again.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "abi/kernel_request.hpp"
#include "base/digest.hpp"
#include "base/thread_annotations.hpp"
#include "compile/cuda_source.hpp"

namespace quern::compile {

/// Requests of CUDA C++ and their keys. Each is compared as a whole, so that no other request gets its key.
/// Thread-safe.
class KeyMemo {
 public:
  std::optional<base::Digest> find(const abi::KernelRequest& request) QUERN_EXCLUDES(mutex_);
  /// Keeps the key if it is that of every later request that equals this one: no option names a file or a
  /// folder, and the source includes nothing, or headers of the toolkit alone. In the latter case a later
  /// request gets the key while the folder of the source and the toolkit's headers are as they were.
  void keep(const CudaPlan& plan, const base::Digest& key) QUERN_EXCLUDES(mutex_);

 private:
  /// The files by which another key could be right.
  struct Files {
    WatchedFile folder;  ///< of the source
    std::shared_ptr<HeaderTree> tree;
    std::optional<base::Digest> tree_digest;
    bool are_as_they_were() const;
  };
  struct Known {
    abi::KernelRequest request;
    base::Digest key;
    std::optional<Files> files;  ///< absent if the source includes nothing
  };

  base::Mutex mutex_;
  std::unordered_map<std::size_t, std::shared_ptr<const Known>> known_ QUERN_GUARDED_BY(mutex_);
  std::size_t size_bytes_ QUERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace quern::compile
