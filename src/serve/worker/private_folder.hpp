// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace quern::serve {

/// A new folder in memory (/dev/shm if that has the space, else the folder for temporary files), which is
/// removed with its files. Folders of processes that were killed are removed when the next is made.
class PrivateFolder {
 public:
  /// `bytes`: what its files may take.
  explicit PrivateFolder(std::uint64_t bytes);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  /// Empty if it could not be made.
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  ///< held while the folder is in use, also by children
};

}  // namespace quern::serve
