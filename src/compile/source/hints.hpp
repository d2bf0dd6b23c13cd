// SPDX-License-Identifier: Apache-2.0
// Hints for the most common mistakes in kernel source.
#pragma once

#include "compile/source/source_reader.hpp"
#include "quern/diagnostic.hpp"

namespace quern::compile {

struct HintContext {
  bool toolkit_headers = true;             ///< the toolkit's headers were found
  std::vector<KernelDeclaration> kernels;  ///< of the source
  std::vector<std::string> expressions;    ///< the request's, as the author wrote them
};

/// Fills `hint` if a likely fix is known, and replaces NVRTC's messages about name expressions, which refer
/// to a file that the author did not write, by one "unknown-kernel" error each, with the kernels of the
/// source.
void add_hints(Diagnostics& diagnostics, const HintContext& context);

/// The error for a name expression with template arguments that names a kernel without: NVRTC accepts
/// "k<int>" for it.
Diagnostic not_a_template(const std::string& expression, const std::vector<KernelDeclaration>& kernels);

}  // namespace quern::compile
