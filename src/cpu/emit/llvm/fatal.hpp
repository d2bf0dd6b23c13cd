// SPDX-License-Identifier: Apache-2.0
// LLVM ends the process if it cannot handle its input: report_fatal_error calls abort or exit. Here such an
// error becomes a diagnostic, so that the host continues.
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
/// After a fatal error or where LLVM has no memory, `work` is left by a jump: nothing that it and LLVM made
/// is destroyed, since LLVM's objects still point into frames that no longer exist. That memory is lost, once
/// for each kernel and specialisation that is refused. Covered are report_fatal_error, LLVM's handler of
/// exhausted memory, and std::bad_alloc under call_llvm; not llvm_unreachable, which a release build of LLVM
/// takes for granted, and not an invalid access inside LLVM.
Expected<void> guard_llvm(std::string_view kernel, llvm::function_ref<void()> work);

/// Runs `call`, which must be inside guard_llvm: std::bad_alloc ends the guarded work. LLVM is built without
/// exceptions, so none of its frames is unwound, and destroying the objects they worked on is no longer safe:
/// create those outside of `call`.
void call_llvm(llvm::function_ref<void()> call);

}  // namespace quern::cpu::emit
