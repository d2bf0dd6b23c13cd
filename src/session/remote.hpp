// SPDX-License-Identifier: Apache-2.0
// The process's compiler, through servers where QUERN_REMOTE names some.
#pragma once

#include <memory>

#include "compile/compiler.hpp"
#include "quern/expected.hpp"

namespace quern::session {

/// compile::shared_compiler() for the environment as it is now. Fails for a QUERN_REMOTE that cannot be used.
Expected<std::shared_ptr<compile::Compiler>> shared_compiler();

}  // namespace quern::session
