// SPDX-License-Identifier: Apache-2.0
// component: base
// Progress of long compilations and copies.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "quern/export.hpp"

namespace quern {

/// The kind of work. Copies are counted in bytes, machine code in instructions of the kernel's PTX, all other
/// work in steps.
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

/// The state of one piece of work: at its begin (`done` is 0), in between, or at its end. Work that fails or
/// is cancelled has no end. Valid during the call of the handler.
struct Progress {
  ProgressStage stage = ProgressStage::compile;
  std::string_view name;
  std::uint64_t done = 0;
  /// 0 if it is not known: NVRTC only calls back from time to time, once it has read the source, and `done`
  /// counts these calls.
  std::uint64_t total = 0;
  bool finished = false;
};

/// Returns false to cancel the work, whose call then throws Error(cancelled). Work can be cancelled before a
/// stage begins, between two pieces of a copy, and when NVRTC calls back; generation of machine code and
/// finished work cannot. Called by the thread that does the work, which may be a thread of the compiler; by
/// several at once if several work. It must not call quern or the driver. An exception that it throws becomes
/// a warning in the log (log.hpp), and the work goes on.
using ProgressHandler = std::function<bool(const Progress&)>;

}  // namespace quern
