// SPDX-License-Identifier: Apache-2.0
// Parts of the compilation, for tests and measurements: PTX -> SIMT IR, and SIMT IR -> the rest.
#pragma once

#include <string>
#include <string_view>

#include "cpu/code/image.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/ir/ir.hpp"
#include "cpu/lower/lower.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Returns the kernel and its callees as finished SIMT IR. Functions that are not inlined have the form
/// `calls`.
Expected<ir::Module> lower_kernel(const ptx::Module& module, std::string_view kernel,
                                  std::string_view file_name = "<ptx>",
                                  lower::CallForm calls = lower::CallForm::functions);

/// Compiles finished IR to machine code.
Expected<CodeImage> compile_image(ir::Module module, const Specialisation& specialisation);

/// Returns the text of a stage for finished IR.
Expected<std::string> stage_text(ir::Module module, const Specialisation& specialisation, Stage stage);

}  // namespace quern::cpu
