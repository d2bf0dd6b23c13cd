// SPDX-License-Identifier: Apache-2.0
// The user's NVRTC options, read as far as quern must know them, and the whole list that NVRTC is given.
#pragma once

#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The user's options that override decisions of quern.
struct UserOptions {
  std::vector<std::string> include_directories;  ///< -I, in order
  std::vector<std::string> pre_includes;         ///< --pre-include
  std::vector<std::string> macros;               ///< -D, "NAME=value"
  bool standard = false;                         ///< gives a --std of its own
  bool raw_strings = true;                       ///< false with --std=c++03
  bool line_info = false;                        ///< says itself what debug information there is
  bool stack_limit = false;                      ///< gives --modify-stack-limit
  bool relocatable = false;                      ///< -rdc=true: PTX only, machine code would need a link step
  bool debug = false;                            ///< -G: the output holds the current directory
  bool int128 = false;                           ///< gives --device-int128
  bool needs_int128 = false;                     ///< not an option: the source has 128-bit integers
  bool cacheable = true;  ///< false if NVRTC reads or writes files that the key cannot cover
};

/// Reads `options`; rejects those that would override options set by quern (architecture, kind of output),
/// with the reason and a replacement.
Expected<UserOptions> read_options(const std::vector<std::string>& options);

/// The options of a run for `architecture` ("compute_89", "sm_90"): ours, the user's, then the toolkit's
/// include directories.
std::vector<std::string> nvrtc_options(const std::string& architecture, const std::vector<std::string>& user,
                                       const UserOptions& read,
                                       const std::vector<std::string>& toolkit_directories);

}  // namespace quern::compile
