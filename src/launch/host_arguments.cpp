// SPDX-License-Identifier: Apache-2.0
#include "launch/host_arguments.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"
#include "runtime/array/host_memory.hpp"
#include "runtime/array/smart_array.hpp"

namespace quern::launch {
namespace {

/// Without a stream the default one is used, and the caller expects the values on return.
std::optional<StreamView> named(StreamView stream) {
  if (stream.context() == nullptr && stream.handle() == nullptr) return std::nullopt;
  return stream;
}

}  // namespace

HostArguments::HostArguments(const std::shared_ptr<runtime::Context>& context, StreamView stream,
                             std::span<const Argument> arguments)
    : stream_(named(stream)) {
  device_copies_.reserve(arguments.size());
  arguments_.reserve(arguments.size());
  for (const Argument& argument : arguments) {
    if (argument.kind() == Argument::Kind::host)
      device_copies_.push_back({argument.host(), nullptr, send(context, *argument.host())});
    else if (argument.kind() == Argument::Kind::smart)
      device_copies_.push_back({nullptr, argument.smart(), argument.smart()->device()});
    else {
      arguments_.push_back(argument);
      continue;
    }
    arguments_.emplace_back(device_copies_.back().device);
  }
}

DeviceNDArray HostArguments::send(const std::shared_ptr<runtime::Context>& context,
                                  const HostArgument& host) const {
  const NDArray& array = host.array;
  if (host.transfer != Transfer::in && array.is_read_only())
    throw Error(ErrorCode::usage,
                fmt::format("cannot copy back to the host array of {}: it is read-only; give "
                            "it as In(), or one that may be written",
                            describe(array)));
  const ArrayOptions options{.order = array.layout().order(), .stream = stream_.value_or(StreamView())};
  const DeviceNDArray device = runtime::make_device_array(
      context, Shape(array.shape().begin(), array.shape().end()), array.element(), options);
  if (host.transfer == Transfer::out) return device;
  if (stream_)
    device.copy_to_device(array, *stream_);
  else
    device.copy_to_device(array);
  return device;
}

void HostArguments::expect_writes() const noexcept {
  for (const DeviceCopy& argument : device_copies_)
    if (argument.smart != nullptr) runtime::expect_writes(*argument.smart->state());
}

void HostArguments::copy_back() const {
  // This is done for all arguments before any copy, since a copy may fail.
  for (const DeviceCopy& argument : device_copies_)
    if (argument.smart != nullptr)
      runtime::remember_use(*argument.smart->state(), stream_.value_or(StreamView()));
  for (const DeviceCopy& argument : device_copies_) {
    if (argument.smart != nullptr)
      argument.smart->mark_changed(Where::device);
    else if (argument.host->transfer != Transfer::in && stream_)
      argument.device.copy_to_host(argument.host->array, *stream_);
    else if (argument.host->transfer != Transfer::in)
      argument.device.copy_to_host(argument.host->array);
  }
}

}  // namespace quern::launch
