// SPDX-License-Identifier: Apache-2.0
// The entries of a PTX text under their author's names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "abi/kernel_request.hpp"
#include "compile/source/source_reader.hpp"

namespace quern::compile {

/// A name expression as the author wrote it, and NVRTC's name for its instance.
using LoweredName = std::pair<std::string, std::string>;

/// Gives each entry its author's name (the name expression, otherwise the demangled name; overloads keep
/// their parameter list) and its parameters their names and types: types from the mangled name if there is
/// one, otherwise from the declaration; names from the declaration with the same name and as many parameters.
/// Unknown ones stay empty.
void name_entries(std::vector<abi::EntryInfo>& entries, const std::vector<LoweredName>& expressions,
                  const std::vector<KernelDeclaration>& declarations);

/// Gives each variable its author's name: the name expression ("&ns::table" is "ns::table"), otherwise the
/// demangled name without NVRTC's prefix for names of internal linkage.
void name_variables(std::vector<abi::VariableInfo>& variables, const std::vector<LoweredName>& expressions);

/// Sets the facts of Kernel Python's entries that only the PTX has, for all entries of a module,
/// since functions that they share may be the reason. Other images keep theirs.
void note_python_facts(abi::PtxImage& image);

}  // namespace quern::compile
