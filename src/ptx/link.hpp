// SPDX-License-Identifier: Apache-2.0
// Links several modules into one, as a device linker does.
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

/// Links all inputs into one module. A declaration (.extern) in one input refers to the definition in
/// another. Of several .weak definitions the first is used, but a .visible one takes precedence. A .common
/// variable is as large as its largest declaration. Symbols without linkage stay private to their module, and
/// are renamed if the name is taken. A function without a definition stays a declaration: the device may
/// provide it. Errors: names that are defined twice, variables without a definition, and declarations that
/// differ from the definition in size, space or parameters. Debug sections are dropped. The caller must
/// verify the result.
Expected<Module> link(std::vector<LinkInput> inputs);

}  // namespace quern::ptx
