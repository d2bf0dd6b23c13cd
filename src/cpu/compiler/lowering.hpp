// SPDX-License-Identifier: Apache-2.0
// Parts of the compiler's way for tests and measurements: PTX -> SIMT IR, and SIMT IR -> the rest.
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

/// The kernel and its callees as finished SIMT IR, functions that are not inlined in the form `calls`.
Expected<ir::Module> lower_kernel(const ptx::Module& module, std::string_view kernel,
                                  std::string_view file_name = "<ptx>",
                                  lower::CallForm calls = lower::CallForm::functions);

/// Machine code of finished IR.
Expected<CodeImage> compile_image(ir::Module module, const Specialisation& specialisation);

/// A stage's text of finished IR.
Expected<std::string> stage_text(ir::Module module, const Specialisation& specialisation, Stage stage);

}  // namespace quern::cpu
