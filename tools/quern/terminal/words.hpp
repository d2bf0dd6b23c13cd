// SPDX-License-Identifier: Apache-2.0
// The library's hints are written for C++ programs; here they are reworded for users of the command line.
#pragma once

#include <string>

namespace quern::cli {

/// Returns `hint` with the library's words replaced according to words.def.
std::string in_command_words(std::string hint);

/// The same for the hints in a message, which are the lines that begin with "hint: ". Other lines do not
/// change.
std::string with_command_words(const std::string& message);

}  // namespace quern::cli
