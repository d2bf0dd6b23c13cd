// SPDX-License-Identifier: Apache-2.0
// component: session
// Exchange of arrays with other libraries by DLPack; dlpack_tensor.hpp has its structs.
#pragma once

#include <cstdint>
#include <optional>

#include "quern/device_array.hpp"
#include "quern/dlpack_tensor.hpp"
#include "quern/export.hpp"
#include "quern/host_memory.hpp"
#include "quern/ndarray.hpp"

namespace quern {

class Session;

/// Options for exporting a device array by DLPack.
struct ToDlpack {
  /// The stream of the work that produces the array's values. The default stream stands for all of
  /// session.stream(); a non-blocking stream of the program's must be named.
  StreamView producer = {};
  /// The stream on which the consumer will use the array: work queued there from now on waits for all work of
  /// `producer`; this call does not wait. Nothing: the two streams are not ordered. See dlpack_consumer().
  std::optional<StreamView> consumer = StreamView();
  /// The array is a copy made for the consumer, who owns it from now on; sets the tensor's flag "is copied".
  bool copied = false;
};

/// Exports the array for another library, which calls the deleter when it no longer uses it; the memory lives
/// until then. Throws Error(usage) for element types that DLPack lacks (records) and for strides that are no
/// multiple of the element.
QUERN_API dlpack::ManagedTensorVersioned* to_dlpack(const DeviceNDArray& array, const ToDlpack& options = {});
/// Exports host memory (kDLCPU): host arrays, and the host's side of pinned, mapped and managed ones. The
/// caller waits for copies to it that are still queued.
QUERN_API dlpack::ManagedTensorVersioned* to_dlpack(const NDArray& array, bool copied = false);
/// The same in the ABI before 1.0, which cannot express "read-only": such arrays are rejected.
QUERN_API dlpack::ManagedTensor* to_dlpack_unversioned(const DeviceNDArray& array,
                                                       const ToDlpack& options = {});
QUERN_API dlpack::ManagedTensor* to_dlpack_unversioned(const NDArray& array);

/// The consumer's stream in the encoding of Python's protocol, `__dlpack__(stream=...)`: 1 is the legacy
/// default stream, 2 the per-thread one, larger values a CUstream; -1 is nothing, no ordering requested.
/// Throws Error(usage) for 0 and for other negative numbers. (Python's None, the default, is the legacy
/// default stream.)
QUERN_API std::optional<StreamView> dlpack_consumer(std::int64_t stream);
/// The reverse: the argument for a producer's `__dlpack__`.
QUERN_API std::int64_t dlpack_stream(StreamView consumer) noexcept;

/// Options for importing an array by DLPack. A tensor does not name the stream that produces its values: in
/// Python the producer gets the consumer's stream and orders its own work; otherwise, name the producer's
/// stream here.
struct FromDlpack {
  /// The stream of the producer's work; nothing: the tensor is ready for the consumer.
  std::optional<StreamView> producer = {};
  /// The stream on which the array is used first: work queued there from now on waits for the producer.
  /// Nothing: this call waits.
  std::optional<StreamView> consumer = {};
};

/// A view of another library's host array (kDLCPU, kDLCUDAHost, kDLCUDAManaged). quern takes ownership of the
/// tensor: its deleter runs when the last view is destroyed, or now if this throws Error(usage): for another
/// major version of the ABI, for devices that are not the host and for element types that kernels lack; the
/// message names them.
QUERN_API NDArray from_dlpack(dlpack::ManagedTensorVersioned* tensor);
QUERN_API NDArray from_dlpack(dlpack::ManagedTensor* tensor);
/// A view of another library's device array (kDLCUDA, kDLCUDAHost, kDLCUDAManaged) in this session. Throws
/// Error(usage) also for memory that belongs to another context and is not shared with all of them.
QUERN_API DeviceNDArray from_dlpack(const Session& session, dlpack::ManagedTensorVersioned* tensor,
                                    const FromDlpack& options = {});
QUERN_API DeviceNDArray from_dlpack(const Session& session, dlpack::ManagedTensor* tensor,
                                    const FromDlpack& options = {});
/// The same for an object that exports itself, for use on `consumer`.
template <DlpackArray A>
DeviceNDArray from_dlpack(const Session& session, const A& array, StreamView consumer = {}) {
  return from_dlpack(session, array.to_dlpack(consumer));
}

}  // namespace quern
