// SPDX-License-Identifier: Apache-2.0
// Finds the files that a source includes, for the cache's key. NVRTC does not say which files it read; a scan
// of #include lines finds every file that it could have read. Conditions are not evaluated, and every
// directory that has a file of the name counts, so the result covers every choice of NVRTC.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/digest.hpp"
#include "compile/source/watched_file.hpp"

namespace quern::compile {

struct IncludeSearch {
  std::vector<std::string> user_directories;  ///< -I
  std::vector<std::string> pre_includes;
  std::vector<std::string> macros;                ///< of -D: "NAME=value"
  bool raw_strings = true;                        ///< false if the language is C++03
  std::vector<std::string> toolkit_directories;   ///< known as a whole: files there are not read
  std::vector<abi::HeaderText> headers;           ///< known as texts; the files that they include are read
  std::vector<abi::HeaderText> standard_headers;  ///< texts that include the toolkit's headers
};

/// A file that was read, and its content's digest.
struct IncludedFile {
  std::string path;
  base::Digest content;
};

struct IncludeScan {
  bool complete = true;  ///< false if the files that NVRTC reads are not known; `unsure` is the reason
  std::string unsure;
  /// A name is also that of a pipe, a device or a socket, which NVRTC might read without end; empty: none.
  std::string special;
  bool toolkit = false;  ///< a name is that of a header of the toolkit
  bool any = false;      ///< something is included, or asked for
  bool int128 = false;   ///< a 128-bit integer type stands in the source or in a file that was read
  base::Digest
      digest;  ///< of the names, locations and contents of everything included, and of what was not found
  std::vector<IncludedFile> files;
  /// The folder of the source, as it was before the search: while it and the toolkit's headers stay as they
  /// are, a search would find the same. Absent if the search depends on more than these, or the folder has
  /// just been changed.
  std::optional<WatchedFile> folder;
};

IncludeScan scan_includes(std::string_view source, const std::string& file_name, const IncludeSearch& search);

}  // namespace quern::compile
