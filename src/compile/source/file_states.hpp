// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compile/source/includes.hpp"

namespace quern::compile {

/// The files that a source includes, as the file system describes them before and after NVRTC runs. Equal
/// states show that no other file stood under one of the names meanwhile, for a moment, unless a folder above
/// the one that holds the file was replaced and put back.
class FileStates {
 public:
  explicit FileStates(const IncludeScan& includes);
  friend bool operator==(const FileStates&, const FileStates&) = default;

 private:
  struct State {
    dev_t device = 0;
    ino_t inode = 0;
    std::int64_t changed_s = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  void add(const std::string& path, bool follow);

  std::vector<State> states_;
};

/// True if the process can open as many more files as NVRTC may have open for this source. NVRTC answers
/// `__has_include` with 0 for a file that it cannot open.
bool has_spare_descriptors(const IncludeScan& includes);

}  // namespace quern::compile
