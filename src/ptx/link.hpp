// SPDX-License-Identifier: Apache-2.0
// Several modules made into one, as a device linker does it.
#pragma once

#include <string>
#include <vector>

#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::ptx {

struct LinkInput {
  std::string name;  ///< for messages
  Module module;     ///< as parse() gives it
};

/// One module of all: what one declares (.extern) is what another defines; of several .weak definitions the
/// first counts, a .visible one before them; a .common variable is as large as the largest; what has no
/// linkage stays its module's own, under another name where that is taken. A function that nobody defines
/// stays a declaration: the device may have it. Refused are names that are defined twice, variables that
/// nobody defines, and declarations that differ from the definition in size, space or parameters. Debug
/// sections are dropped. The result is to be verified.
Expected<Module> link(std::vector<LinkInput> inputs);

}  // namespace quern::ptx
