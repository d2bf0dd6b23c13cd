// SPDX-License-Identifier: Apache-2.0
// The list of passes, and the loop that runs them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "cpu/compiler/compilation.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// The form of the kernel after a pass.
enum class Form : std::uint8_t {
  builder,  ///< SIMT IR under construction: a graph of blocks, not yet in SSA form
  simt,     ///< finished SIMT IR, which verify() accepts
  checked,  ///< finished SIMT IR, and every error in the author's code has been reported
  cut,      ///< checked SIMT IR with blocks cut as the emitter needs them, and a plan for each function
  llvm,     ///< LLVM IR
  object,   ///< an object file in memory
  image,    ///< linked machine code
};

struct Pass {
  std::string_view name;  ///< a verb phrase
  Form form = Form::builder;
  Expected<void> (*run)(Compilation& compilation) = nullptr;
  std::uint8_t least_level = kDebugLevel;  ///< it does nothing below this Specialisation::opt_level
};

/// Every pass, in order.
std::span<const Pass> pass_list();

/// Called after each pass with its duration. Errors end the compilation.
using AfterPass =
    std::function<Expected<void>(const Pass& pass, Compilation& compilation, std::chrono::nanoseconds time)>;

/// Runs the passes from the first one of form `from` to the last one of form `to`.
Expected<void> run_passes(Compilation& compilation, Form from, Form to,
                          std::span<const AfterPass> hooks = {});
/// The same from the pass `first` on, which must be in the list.
Expected<void> run_passes(Compilation& compilation, std::string_view first, Form to,
                          std::span<const AfterPass> hooks = {});

}  // namespace quern::cpu
