// SPDX-License-Identifier: Apache-2.0
// room: base
// How far long work has come: compiling and copying.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "quern/export.hpp"

namespace quern {

/// What is being done. Copies are counted in bytes, all else in steps.
enum class ProgressStage : std::uint8_t {
  translate,       ///< Kernel Python becomes CUDA C++; `name` is the file
  compile,         ///< NVRTC makes PTX of CUDA C++; `name` is the file
  load,            ///< the driver takes the code of `name`, a file; a GPU's may compile PTX here
  generate,        ///< the CPU device makes machine code of kernel `name`, at its first launch
  copy_to_device,  ///< `name` is empty
  copy_to_host,
};

/// "translate", "compile", "load", "generate", "copy to the device", "copy to the host".
QUERN_API std::string_view to_string(ProgressStage stage) noexcept;

/// One moment of one piece of work: its begin (`done` is 0), a moment in between, or its end. Work that fails
/// or is cancelled has no end. Valid during the call of the handler.
struct Progress {
  ProgressStage stage = ProgressStage::compile;
  std::string_view name;
  std::uint64_t done = 0;
  /// 0: nobody knows. NVRTC tells only that it goes on; `done` then counts how often it did, which it begins
  /// to do when it has read the source.
  std::uint64_t total = 0;
  bool finished = false;
};

/// Returns false to cancel the work, which then ends in Error(cancelled): before a stage begins, between two
/// parts of a copy, and wherever NVRTC tells that it goes on. Generating code and what is finished are not
/// cancelled. Called on the thread that does the work, which a compiler may have started for its stack;
/// several pieces of work at once are told from several threads. It must make no call of quern's or the
/// driver's. What it throws is a warning in the log (log.hpp), and the work goes on.
using ProgressHandler = std::function<bool(const Progress&)>;

}  // namespace quern
