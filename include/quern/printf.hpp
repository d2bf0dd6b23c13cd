// SPDX-License-Identifier: Apache-2.0
// room: driver
// What kernels print, for a program that does not want it on its stdout.
#pragma once

#include <functional>
#include <string_view>

#include "quern/export.hpp"

namespace quern {

/// What one call of printf in a kernel printed, by one thread. Valid during the call of the handler.
struct DevicePrint {
  std::string_view text;    ///< whole, as formatted; whether it ends in a newline is the kernel's choice
  std::string_view kernel;  ///< the kernel's name, as its author wrote it
  /// CUcontext of the launch, as Session::native_context(): tells isolated sessions apart. Null where the
  /// context is gone.
  void* context = nullptr;
};

/// Called from a thread that runs the kernel, a thread of the program's that waits for it included, one text
/// at a time. It must make no call of quern's other than set_printf_handler(), and none of the driver's: the
/// kernel waits for it. What it throws is reported in the log (log.hpp), and goes no further.
using PrintfHandler = std::function<void(const DevicePrint&)>;

/// From now on `handler` receives what kernels on the CPU device print, in the whole process; nothing of it
/// goes to stdout. When a stream has been synchronised, all that its kernels printed has been handed over. An
/// empty one: stdout again, as at the beginning. Returns the former handler when no other thread is inside it
/// any more, as set_log_handler() does. On a GPU the CUDA driver itself writes to the process's stdout, and
/// no handler can change that: a warning in the log says so, once, where a session on a GPU is open and a
/// handler is set. Thread-safe.
QUERN_API PrintfHandler set_printf_handler(PrintfHandler handler);

}  // namespace quern
