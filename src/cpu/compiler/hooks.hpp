// SPDX-License-Identifier: Apache-2.0
// Hooks that run after each pass: they print the kernel, measure the time, verify the IR.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu/compiler/compiler.hpp"
#include "cpu/compiler/passes.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Adds each pass's time to `times`, in the order of first runs.
AfterPass record_times(std::vector<PassTime>& times);

/// Prints the kernel to `text` after the pass `name`. If the pass runs again, the last run counts.
AfterPass print_after(std::string_view name, std::string& text);

/// Verifies the IR from Form::simt on. Errors (codes "ir-invalid" and "internal") name the pass.
AfterPass verify_ir();

/// Prints the kernel: SIMT IR, or LLVM IR from Form::llvm on.
Expected<std::string> print(Compilation& compilation, Form form);

}  // namespace quern::cpu
