// SPDX-License-Identifier: Apache-2.0
// LLVM ends the process if it cannot handle its input: report_fatal_error calls abort or exit. These
// functions make a diagnostic of such an error, so that the host continues.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <new>
#include <string_view>

#include "quern/expected.hpp"

namespace quern::cpu::emit {

/// Runs `work`, which calls LLVM. Errors (code "internal"): LLVM's fatal errors, with its reason. Throws
/// std::bad_alloc if LLVM runs out of memory, and the exceptions of `work`. Any number of threads may call
/// it.
///
/// After a fatal error, or if LLVM runs out of memory, a jump leaves `work`. The objects of LLVM are not
/// destroyed, since they still point into stack frames that no longer exist. That memory is lost, once for
/// each kernel and specialisation that is refused. This covers report_fatal_error, LLVM's handler for
/// exhausted memory, and std::bad_alloc in call_llvm. It does not cover llvm_unreachable, which a release
/// build of LLVM assumes not to happen, or an invalid memory access in LLVM.
Expected<void> guard_llvm(std::string_view kernel, llvm::function_ref<void()> work);

/// Runs `call`, which must be inside guard_llvm: std::bad_alloc ends the guarded work. LLVM is built without
/// exceptions, so its frames are not unwound, and the objects that they worked on must not be destroyed.
/// Create these objects outside `call`.
void call_llvm(llvm::function_ref<void()> call);

}  // namespace quern::cpu::emit
