// SPDX-License-Identifier: Apache-2.0
// The process's compiler, which uses servers if QUERN_REMOTE names some.
#pragma once

#include <memory>

#include "abi/kernel_request.hpp"
#include "compile/compiler.hpp"
#include "quern/expected.hpp"
#include "quern/progress.hpp"

namespace quern::session {

/// compile::shared_compiler() for the environment as it is now. Fails for a QUERN_REMOTE that cannot be used.
Expected<std::shared_ptr<compile::Compiler>> shared_compiler();
/// Compiles the request with it, for no session. `progress` may be empty.
Expected<compile::Compiler::Image> compile_without_session(const abi::KernelRequest& request,
                                                           const ProgressHandler& progress);

}  // namespace quern::session
