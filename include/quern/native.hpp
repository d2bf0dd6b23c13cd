// SPDX-License-Identifier: Apache-2.0
// component: runtime
// For programs that use the CUDA Driver API themselves. Every object gives its native handle
// (Session::native_context, StreamView::handle, Event::handle, Module::handle, Kernel::handle and
// module_handle, DeviceAllocator::native_pool, DeviceNDArray::data), and sessions take the program's
// (SessionOptions::context, external_stream, external_event, adopt).
#pragma once

#include <string_view>

#include "quern/device.hpp"
#include "quern/export.hpp"

namespace quern {

/// The address of a function of the Driver API in this device's driver: "cuMemAlloc_v2" (the versioned name
/// of cuda.h's CUDA 13.0), to be cast to the type of that declaration. Null for a name that quern does not
/// use. With it, one program makes its own driver calls on a GPU and on the CPU device.
QUERN_API void* driver_function(const Device& device, std::string_view name) noexcept;

}  // namespace quern
