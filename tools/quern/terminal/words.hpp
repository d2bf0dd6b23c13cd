// SPDX-License-Identifier: Apache-2.0
// The library's hints are written for C++ programs; here they are reworded for users of the command line.
#pragma once

#include <string>

namespace quern::cli {

/// `hint` with the words of words.def in place of the library's.
std::string in_command_words(std::string hint);

/// The same for the hints in a message, the lines that begin with "hint: "; the rest stays as it is.
std::string with_command_words(const std::string& message);

}  // namespace quern::cli
