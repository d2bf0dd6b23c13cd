// SPDX-License-Identifier: Apache-2.0
// room: session
// The host side of Numba's ROC target (manual, "ROC memory management"), over the same sessions: programs
// written for it keep their names. A session is ROC's context.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>

#include "quern/session.hpp"

namespace quern::roc {

/// roc.device_array(shape, dtype, strides, order).
inline DeviceNDArray device_array(const Session& context, const Shape& shape,
                                  const ElementType& element = Dtype::float64,
                                  const ArrayOptions& options = {}) {
  return context.device_array(std::span(shape), element, options);
}

/// roc.device_array_like(ary).
inline DeviceNDArray device_array_like(const Session& context, const StridedArray& array) {
  return context.device_array_like(array);
}

/// roc.to_device(obj, context, copy, to): done on return. `copy` false: only the memory is made.
inline DeviceNDArray to_device(const NDArray& array, const Session& context, bool copy = true,
                               std::optional<DeviceNDArray> to = {}) {
  return context.to_device(array, {.copy = copy, .to = std::move(to)});
}

/// roc.register(*arys): the device's runtime knows this host memory until deregister(), or until the session
/// and all its copies are gone; the memory must live as long. Throws Error(usage) where some of it is known
/// already; then none of the arrays is registered.
inline void register_(const Session& context, std::initializer_list<NDArray> arrays) {
  context.register_memory(std::span(arrays.begin(), arrays.size()));
}
/// roc.deregister(*arys): waits for queued copies. Throws Error(usage) for an array that is not registered;
/// the others are deregistered all the same.
inline void deregister(const Session& context, std::initializer_list<NDArray> arrays) {
  context.deregister_memory(std::span(arrays.begin(), arrays.size()));
}
/// The same for a scope.
[[nodiscard]] inline PinnedScope registered(const Session& context, std::initializer_list<NDArray> arrays) {
  return context.pinned(arrays);
}

/// roc.stream(); auto_synchronize() and synchronize() are the stream's own.
inline Stream stream(const Session& context) { return context.stream(); }

}  // namespace quern::roc
