// SPDX-License-Identifier: Apache-2.0
// Copies between host and device arrays of any layout, at once or on a stream.
#pragma once

#include <memory>
#include <optional>

#include "quern/layout.hpp"
#include "quern/ndarray.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// An array in device memory; `address` is element 0.
struct DeviceSide {
  CUdeviceptr address = 0;
  const Layout& layout;
  std::shared_ptr<const void> keep;  ///< the memory, for work that runs later
};

/// An array in host memory. Without `keep` the memory is the program's own: a source is copied aside before a
/// queued copy returns, a target must outlive the synchronisation. Before memory is copied aside, the call
/// waits for queued copies into it.
struct HostSide {
  std::byte* data = nullptr;
  const Layout& layout;
  std::shared_ptr<const void> keep;
  bool page_locked = false;
};

/// Both arrays have the same shape and item size; elements with different offsets are packed first. No
/// stream: done on return, in the order of the default stream. Throws DriverError, OutOfMemory.
void copy_to_device(Context& context, const DeviceSide& to, const HostSide& from,
                    std::optional<StreamView> stream);
void copy_to_host(Context& context, const HostSide& to, const DeviceSide& from,
                  std::optional<StreamView> stream);
/// The arrays may overlap: then the copy uses a temporary buffer.
void copy_on_device(Context& context, const DeviceSide& to, const DeviceSide& from,
                    std::optional<StreamView> stream);

/// Returns when all copies into the array that were queued before in the context have run; for code that
/// reads it on the calling thread. Throws DriverError, and Error where their work was cancelled.
void wait_until_filled(Context& context, const NDArray& host);

}  // namespace quern::runtime
