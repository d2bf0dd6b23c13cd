// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "quern/device_array.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// The queued work for which a buffer's memory must be kept until it has run.
enum class Retention : std::uint8_t {
  none,           ///< the release waits for all work by itself, as the driver's does
  other_streams,  ///< the release waits for the stream that the memory was made on
  /// The release waits for nothing: memory of another owner, and memory made on a thread's own default
  /// stream, whose handle denotes another stream in the thread that releases it.
  all
};

struct BufferState {
  std::shared_ptr<Context> context;
  CUdeviceptr address = 0;    ///< 0 where size_bytes is 0
  std::byte* host = nullptr;  ///< the host's address of the same memory, if it has one
  std::size_t size_bytes = 0;
  std::shared_ptr<const void> memory;  ///< a Resource, or the owner of memory of others
  std::uint64_t stream_handle = 0;     ///< of pooled memory
  Retention retention = Retention::none;
  bool read_only = false;
  bool portable = false;  ///< every context of its driver can access it, at the same address
};

/// Uninitialised device memory; a size of 0 is legal and allocates nothing.
DeviceBuffer make_buffer(std::shared_ptr<Context> context, std::size_t size_bytes, StreamView stream = {});

/// Memory that others own, kept alive by `owner`.
DeviceBuffer adopt_buffer(std::shared_ptr<Context> context, CUdeviceptr address, std::size_t size_bytes,
                          std::shared_ptr<const void> owner, bool read_only);

/// The context of an array's memory. Throws Error(usage) for a default-constructed one.
Context& context_of(const DeviceBuffer& buffer);
std::shared_ptr<Context> shared_context_of(const DeviceBuffer& buffer);

/// True if work on `stream` must keep the buffer's memory. Costs nothing for the driver's own.
inline bool needs_keeping(const DeviceBuffer& buffer, CUstream stream) {
  const BufferState* state = buffer.state().get();
  if (state == nullptr || state->retention == Retention::none) [[likely]]
    return false;
  return state->retention == Retention::all ||
         state->stream_handle != reinterpret_cast<std::uintptr_t>(stream);
}

}  // namespace quern::runtime
