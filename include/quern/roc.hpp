// SPDX-License-Identifier: Apache-2.0
// component: session
// The host side of Numba's ROC target (manual, "ROC memory management") under its names, implemented with
// sessions. A session is ROC's context.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "quern/session.hpp"

namespace quern::roc {

/// roc.device_array(shape, dtype, strides, order): uninitialised. `options` has the order, the strides (which
/// override it) and the stream on which pooled memory is allocated.
inline DeviceNDArray device_array(const Session& context, const Shape& shape,
                                  const ElementType& element = Dtype::float64,
                                  const ArrayOptions& options = {}) {
  return context.device_array(std::span(shape), element, options);
}

/// The same for a type that the compiler knows.
template <class T>
DeviceArray<T> device_array(const Session& context, const Shape& shape, const ArrayOptions& options = {}) {
  return context.device_array<T>(shape, options);
}

/// roc.device_array_like(ary), of a host or a device array.
inline DeviceNDArray device_array_like(const Session& context, const StridedArray& array,
                                       StreamView stream = {}) {
  return context.device_array_like(array, stream);
}

/// roc.to_device(obj, context, copy, to): done on return; with a stream it is queued there. `copy` false:
/// only the memory is made. The arrays' own functions do the rest: copy_to_host(ary, stream),
/// copy_to_device(ary, stream), is_c_contiguous(), is_f_contiguous(), ravel(order, stream), reshape(shape,
/// order).
inline DeviceNDArray to_device(const NDArray& array, const Session& context, bool copy = true,
                               std::optional<DeviceNDArray> to = {}, std::optional<StreamView> stream = {}) {
  return context.to_device(array, {.stream = stream, .copy = copy, .to = std::move(to)});
}
inline DeviceNDArray to_device(const NDArray& array, const Session& context, StreamView stream) {
  return context.to_device(array, {.stream = stream});
}
/// Copies a vector, span, C array, mdspan, or one struct: the result's type has the element type, and the
/// number of dimensions if the source's type has it.
template <class T>
  requires(!std::derived_from<T, StridedArray>)
auto to_device(const T& values, const Session& context, std::optional<StreamView> stream = {}) {
  return context.to_device(values, stream);
}

/// roc.register(*arys): registers this host memory with the device's runtime until deregister(), or until the
/// session and all its copies are destroyed; the memory must live as long. Throws Error(usage) if some of it
/// is already registered; then none of the arrays is registered.
inline void register_(const Session& context, std::initializer_list<NDArray> arrays) {
  context.register_memory(std::span(arrays.begin(), arrays.size()));
}
/// roc.deregister(*arys): waits for queued copies. Throws Error(usage) for an array that is not registered;
/// the others are still deregistered.
inline void deregister(const Session& context, std::initializer_list<NDArray> arrays) {
  context.deregister_memory(std::span(arrays.begin(), arrays.size()));
}
/// The same for a scope.
[[nodiscard]] inline PinnedScope registered(const Session& context, std::initializer_list<NDArray> arrays) {
  return context.pinned(arrays);
}

/// roc.stream(); auto_synchronize() and synchronize() are functions of the stream.
inline Stream stream(const Session& context) { return context.stream(); }

}  // namespace quern::roc
