// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "quern/device_array.hpp"
#include "quern/dlpack_tensor.hpp"
#include "quern/ndarray.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// DLPack's data type for elements of that type.
dlpack::DataType dlpack_type(Dtype dtype) noexcept;
/// Throws Error(usage).
[[noreturn]] void refuse_dlpack(const std::string& why);

/// Views of a producer's memory, in host memory and in this context. The tensor's deleter runs when the last
/// view is destroyed, or now if this throws.
NDArray take_host_tensor(dlpack::ManagedTensorVersioned* tensor);
NDArray take_host_tensor(dlpack::ManagedTensor* tensor);
DeviceNDArray take_device_tensor(const std::shared_ptr<Context>& context,
                                 dlpack::ManagedTensorVersioned* tensor);
DeviceNDArray take_device_tensor(const std::shared_ptr<Context>& context, dlpack::ManagedTensor* tensor);

}  // namespace quern::runtime
