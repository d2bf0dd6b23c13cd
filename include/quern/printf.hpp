// SPDX-License-Identifier: Apache-2.0
// component: driver
// Output of printf in kernels, for programs that keep it off their stdout.
#pragma once

#include <functional>
#include <string_view>

#include "quern/export.hpp"

namespace quern {

/// The output of one call of printf by one thread of a kernel. Valid during the call of the handler.
struct DevicePrint {
  std::string_view text;  ///< the complete formatted text; it ends in a newline only if the kernel wrote one
  std::string_view kernel;  ///< the kernel's name, as its author wrote it
  /// The CUcontext of the launch. It equals Session::native_context() and tells isolated sessions apart. Null
  /// if the context has been destroyed.
  void* context = nullptr;
};

/// Called by a thread that runs a kernel, which may be a thread of the program that waits for it, and not
/// always the one that printed; by one thread at a time. Neither a time limit nor cancel() interrupts it, and
/// threads that print wait while it has 1 MiB of output still to receive. It must not call quern, except
/// set_printf_handler(), and must not call the driver. An exception that it throws becomes a warning in the
/// log (log.hpp).
using PrintfHandler = std::function<void(const DevicePrint&)>;

/// From now on `handler` receives the output of printf of all kernels on the CPU device, and none of it goes
/// to stdout. When a synchronisation of a stream returns, the handler has received all output of its kernels,
/// unless they were stopped. An empty handler restores the default: stdout. Returns the former handler, when
/// no other thread is inside it, as set_log_handler() does. On a GPU the CUDA driver itself writes to the
/// stdout of the process, and no handler receives that output: if a handler is set and a session on a GPU is
/// open, one warning in the log says so. Thread-safe.
QUERN_API PrintfHandler set_printf_handler(PrintfHandler handler);

}  // namespace quern
