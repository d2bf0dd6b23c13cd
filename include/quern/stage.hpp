// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"
#include "quern/launch_config.hpp"
#include "quern/module.hpp"
#include "quern/progress.hpp"

namespace quern {

/// The stages between source and machine code: the CUDA C++ that NVRTC is given, its PTX, and the CPU
/// device's SIMT IR, LLVM IR and assembly.
enum class Stage : std::uint8_t { cuda, ptx, simt, llvm, assembly };

/// "cuda", "ptx", "simt", "llvm", "asm".
QUERN_API std::optional<Stage> stage_named(std::string_view name) noexcept;
QUERN_API std::string_view name(Stage stage) noexcept;

/// The time of a pass of the CPU device's compiler, summed over its runs.
struct PassTime {
  std::string name;
  std::uint32_t runs = 0;
  std::chrono::nanoseconds time{0};
};

struct StageOptions {
  LoadOptions load;
  /// The kernel's name; may be empty if the file has one kernel, and for the stages that show the whole file
  /// (cuda, ptx).
  std::string kernel;
  /// The argument types of a Kernel Python kernel, "float32, float32[::1]"; empty: its decorator's.
  std::string signature;
  /// The CPU device specialises code on the block's shape.
  Dim3 block = {256};
  /// simt and llvm only: shows the kernel after this pass of the CPU device's compiler; empty: after the last
  /// one. For an unknown name, Error(usage) lists the passes.
  std::string pass;
  /// simt, llvm and asm only. Not null: gets a row for each pass that ran, in order.
  std::vector<PassTime>* pass_times = nullptr;
  /// The virtual architecture of the PTX.
  std::uint32_t compute_capability = 89;
  /// Receives the progress of translating and compiling, and may cancel them.
  ProgressHandler progress = {};
};

/// The text of a stage of `.py`, `.cu` or `.ptx` file `path`. No device is needed; simt, llvm and asm need
/// the CPU device's plug-in. Throws CompileError, Error(io, not_found, usage, unsupported).
QUERN_API std::string stage_text(const std::filesystem::path& path, Stage stage,
                                 const StageOptions& options = {});
/// The same for source text; StageOptions::load.file_name is its name in messages.
QUERN_API std::string stage_text(std::string_view source, SourceLanguage language, Stage stage,
                                 const StageOptions& options = {});

}  // namespace quern
